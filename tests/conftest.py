"""One hypothesis profile for all tests: examples may take as long as a busy machine needs.

With ``LOOPSCAN_SAME_EXAMPLES`` set, as CI has it, the examples are the same every time: what fails, the change broke.
Everybody else tries new ones.
"""

import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "loopscan",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="LOOPSCAN_SAME_EXAMPLES" in os.environ,
)
settings.load_profile("loopscan")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where no package registry can be reached."""
    folder = str(tmp_path_factory.mktemp("registry"))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "hatchling"]
    if subprocess.run(command, capture_output=True, timeout=120, check=False).returncode:
        pytest.skip("no package registry can be reached")
