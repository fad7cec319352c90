"""Search over everything ever said, in a session and across sessions: by words, by meaning, by who and when."""

from windowsill.archive.archive import Archive, Scope
from windowsill.archive.embeddings import Embedder, WordLlama
from windowsill.archive.ranking import Found, Ranking

__all__ = ["Archive", "Embedder", "Found", "Ranking", "Scope", "WordLlama"]
