"""One hypothesis profile for all tests: examples may take as long as a busy machine needs."""

from hypothesis import settings

settings.register_profile("loopscan", deadline=None)
settings.load_profile("loopscan")
