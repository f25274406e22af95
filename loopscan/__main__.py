"""``python -m loopscan`` is the command ``loopscan``."""

from loopscan.cli.main import run

if __name__ == "__main__":
    run()
