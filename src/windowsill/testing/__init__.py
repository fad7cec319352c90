"""A local server that speaks the providers' protocols strictly, for tests without a network.

It refuses what a provider would refuse, with the provider's kind of error; it counts tokens and says what a prompt
cache would have served; it streams, signs reasoning, and edits conversations where it is asked to; it can be told to
overflow, to fail and to be slow.
"""

from windowsill.testing.answers import Answer, Call
from windowsill.testing.seen import Seen
from windowsill.testing.server import Server

__all__ = ["Answer", "Call", "Seen", "Server"]
