"""The object a user holds, and the one-call form of it."""

from windowsill.session.fit import fit
from windowsill.session.session import Session

__all__ = ["Session", "fit"]
