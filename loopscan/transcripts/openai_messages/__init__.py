"""Conversations as messages with roles, in the words of OpenAI's and Anthropic's interfaces.

``reader`` recognises and reads them; ``shapes`` finds the conversations in what people wrote, ``conversation`` tells
one to the replay, ``logs`` folds the logs of single requests into conversations, ``blocks`` reads contents.
"""

from loopscan.transcripts.openai_messages.reader import OpenAIMessagesReader

__all__ = ["OpenAIMessagesReader"]
