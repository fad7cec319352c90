"""`windowsill sessions`: list, show, export, import, unfold, rewind, checkpoints, verify."""
