"""Tools for the model: whatever left the window can be read and searched, and how full the window is can be asked.

One definition each, for three doors: definitions for any provider, plain Python functions, and MCP.
"""

from windowsill.session.tools.arguments import TOOLS
from windowsill.session.tools.toolbox import Answer, Toolbox

__all__ = ["TOOLS", "Answer", "Toolbox"]
