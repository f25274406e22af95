"""From the paths that people name to the events that sources record.

``discover`` finds the sources, with ``places``, ``streams``, ``archives``, ``once``, ``remote``, ``pieces``,
``lists`` and ``patterns`` for where bytes come from, and ``reasons`` for why something is not read. ``reader``
says what a reader is and lists them: a folder for each format. ``feed``, ``jsonl``, ``documents``, ``either``,
``heads``, ``dialogue`` and ``values`` are what readers have in common, ``ledger`` what keeps near-copies from
counting twice.
"""
