"""Events of OpenHands: those of its SDK, those of the classic application, and trajectories converted from them.

``reader`` recognises and reads them; ``sdk`` and ``classic`` say what their events mean, ``steps`` what a step of a
converted trajectory does; ``session`` is what they share, ``commands`` the outcome of a command.
"""

from loopscan.transcripts.openhands.reader import OpenHandsReader

__all__ = ["OpenHandsReader"]
