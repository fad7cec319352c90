"""Benchmarks: every figure is a ratio to a peer or a baseline of the same run, with its growth over size shown."""
