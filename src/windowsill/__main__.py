"""`python -m windowsill` is the command `windowsill`."""

from windowsill.cli import main

main()
