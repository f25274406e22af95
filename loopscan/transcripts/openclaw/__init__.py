"""Session files of OpenClaw and of pi, from which it grew: one JSON object a line, versions 1 to 4.

``reader`` recognises and reads them; ``session`` keeps the order, ``runs`` the runs, ``results`` the meaning of
stored results, ``copies`` the entries that were appended twice, ``entries`` the fields.
"""

from loopscan.transcripts.openclaw.reader import OpenClawReader

__all__ = ["OpenClawReader"]
