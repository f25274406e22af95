"""Putting settings of loop detection into an openclaw.json, with everything else in the file kept as it is.

:func:`edit` returns what would be written, :meth:`Edit.diff` shows it and :meth:`Edit.write` does it;
:func:`block_text` is for those who would rather paste.
"""

from loopscan.configedit.editing import Change, Edit, block_text, edit

__all__ = ["Change", "Edit", "block_text", "edit"]
