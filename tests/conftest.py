"""One hypothesis profile for all tests: examples may take as long as a busy machine needs.

With ``LOOPSCAN_SAME_EXAMPLES`` set, as CI has it, the examples are the same every time: what fails, the change broke.
Everybody else tries new ones.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "loopscan",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="LOOPSCAN_SAME_EXAMPLES" in os.environ,
)
settings.load_profile("loopscan")
