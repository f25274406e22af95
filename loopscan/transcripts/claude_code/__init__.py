"""Session files of Claude Code, and what ``claude -p --output-format stream-json`` prints: one JSON object a line.

``reader`` recognises them, ``feed`` tells dialogues what their lines say, ``sessions`` which session a line is of and
which lines were recorded before, ``prompts`` who speaks in a user line, ``results`` what a result means.
"""

from loopscan.transcripts.claude_code.reader import ClaudeCodeReader

__all__ = ["ClaudeCodeReader"]
