"""What OpenClaw and pi, from which it grew, leave of their sessions.

Session files are read by ``reader``: ``session`` turns their entries into events, with ``runs`` and ``slots``
for what waits, ``results`` for what is stored of outcomes, ``copies`` for entries that were appended twice,
``entries`` for the fields. The rest comes to the same entries from elsewhere: ``sqlite`` (with ``readonly``,
``tables``, ``rows``, ``archived``) and ``backup`` from databases, ``trajectory`` (with ``trace``,
``snapshots``, ``rebuilt``) from exports and sidecars. ``log`` and ``logline`` read what the gateway says of its
verdicts.
"""

from loopscan.transcripts.openclaw.reader import OpenClawReader

__all__ = ["OpenClawReader"]
