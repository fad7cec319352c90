"""The wire formats of providers: read, render, validate; no input or output."""
