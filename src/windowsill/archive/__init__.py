"""Search over everything ever said, in a session and across sessions: by words, by meaning, by who and when."""

from windowsill.archive.archive import Archive
from windowsill.archive.embedders import Embedder, WordLlama
from windowsill.archive.found import Found
from windowsill.archive.ranking import Ranking
from windowsill.archive.scope import Scope

__all__ = ["Archive", "Embedder", "Found", "Ranking", "Scope", "WordLlama"]
