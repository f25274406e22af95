"""Tasks of Cline and its relatives (Roo Code, Kilo Code): what the model was sent, and what the user was shown.

A task is a folder. ``history`` reads ``api_conversation_history.json``, which is the better record, ``ui`` reads
``ui_messages.json``; ``markup`` finds the calls in the model's text, ``answers`` what became of them.
"""

from loopscan.transcripts.cline.history import ClineReader
from loopscan.transcripts.cline.ui import ClineUiReader

__all__ = ["ClineReader", "ClineUiReader"]
