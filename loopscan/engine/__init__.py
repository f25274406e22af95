"""The streaks, verdicts and guards of OpenClaw; knows nothing of files or formats."""
