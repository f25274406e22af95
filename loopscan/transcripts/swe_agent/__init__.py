"""Trajectories of SWE-agent and mini-swe-agent: one JSON object a run of the agent.

``reader`` recognises and reads them; ``trajectory`` reads the steps of SWE-agent, ``mini`` the messages of
mini-swe-agent.
"""

from loopscan.transcripts.swe_agent.reader import SweAgentReader

__all__ = ["SweAgentReader"]
