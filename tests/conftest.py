"""What every test shares: Hypothesis without a stopwatch."""

from hypothesis import settings

# A deadline would assert how fast the machine is.
settings.register_profile("crawld", deadline=None)
settings.load_profile("crawld")
