"""What Codex CLI records: rollout files, old and new, and the stream that ``codex exec --json`` prints.

``reader`` recognises and reads them; ``rollout`` and ``stream`` keep the order of the two, ``lines`` takes the lines
of a rollout apart, ``outputs`` knows what recorded outputs of tools mean, ``replays`` what a resumed or forked
session repeats.
"""

from loopscan.transcripts.codex.reader import CodexReader, CodexStreamReader

__all__ = ["CodexReader", "CodexStreamReader"]
