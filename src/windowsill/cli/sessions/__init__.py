"""`windowsill sessions`: list, show, export, import, unfold, rewind, verify."""
