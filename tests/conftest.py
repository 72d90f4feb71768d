"""What every test shares: Hypothesis without a stopwatch, and without surprises in CI."""

import os

from hypothesis import HealthCheck, settings

# A deadline, or how long examples take to draw, would assert how fast the machine is.
settings.register_profile("crawld", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A verdict is about the change that is judged: the same examples each time. New ones are looked
# for wherever else the tests run.
settings.register_profile("ci", settings.get_profile("crawld"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "crawld")
