"""Sessions of the Gemini CLI: saved chats and session files, as one document or as lines.

``reader`` recognises and reads them; ``session`` keeps the order of messages, ``answers`` the meaning of what
tools answered.
"""

from loopscan.transcripts.gemini.reader import GeminiReader

__all__ = ["GeminiReader"]
