"""The files of a folder, recorded beside a conversation and brought back with it."""

from windowsill.files.folder import Folder
from windowsill.files.restore import Restored
from windowsill.files.shadow import FileChange, FileDiff, Record, Shadow

__all__ = ["FileChange", "FileDiff", "Folder", "Record", "Restored", "Shadow"]
