"""Reports of ``loopscan tune``: a module for each format, with the words and tables that they share."""
