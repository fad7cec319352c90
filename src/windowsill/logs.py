"""The log of the library. It says nothing by itself: a program that wants to hear it sets up `logging`."""

import logging

log = logging.getLogger("windowsill")
log.addHandler(logging.NullHandler())
