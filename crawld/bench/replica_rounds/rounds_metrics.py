"""The metrics of the rounds for `crawld bench replica`, each with the suffix of its web.

The web of look-alikes counts twice, fully crawled and partly crawled; the worse figure is reported.
The older webs are run with the first seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from crawld.bench.replica_rounds.rounds_web import rounds_web
from crawld.bench.replica_rounds.run_rounds import RoundsScenario, run_rounds
from crawld.bench.result import Metrics
from crawld.bench.run import Progress
from crawld.simweb.lookalike.web import (
    FULL,
    PARTIAL,
    LookalikeParameters,
    LookalikeWeb,
    make_lookalike_web,
)
from crawld.simweb.replica_parameters import WEBS, WebParameters, scale_web
from crawld.simweb.replica_web import make_web

_HOSTS: Final = 800
_QUICK_WEB: Final = LookalikeParameters(
    hosts=100,
    coverage=0.7,
    kinds=(
        *("www", "mirrors", "staging", "countries", "diverging_copies", "versions", "languages"),
        *("shops", "forks", "login_walls", "platform_copier", "small_changes", "turning_copier"),
    ),
)
_REPLICATED: Final = 0.3
_PAGES: Final = 20
_QUICK: Final = RoundsScenario(days=8.0, step_days=1.0, follow_ups=0)
_BEST_IS_MORE: Final = ("requests_saved_share", "declared", "attacks", "deferred_pages", "diverged")


def rounds_metrics(seed: int, progress: Progress, *, quick: bool) -> Metrics:
    """Return the figures of every web; quick: of a small web of look-alikes for few days."""
    scenario = _QUICK if quick else RoundsScenario(follow_ups=1)
    found: Metrics = {}
    for name, make in _webs(seed, quick=quick):
        progress(f"seed {seed}: {scenario.days:g} days of the {name} web")
        for key, value in run_rounds(make(), seed, scenario).metrics.items():
            of_web = f"{key}_{name}"
            worse = min if key in _BEST_IS_MORE else max
            found[of_web] = worse(value, found[of_web]) if of_web in found else value
    return found


def _webs(seed: int, *, quick: bool) -> Iterator[tuple[str, Callable[[], LookalikeWeb]]]:
    """Yield names of webs, and what makes each."""
    if quick:
        yield "lookalike", partial(make_lookalike_web, _QUICK_WEB, seed)
        return
    for parameters in (FULL, PARTIAL):
        sized = LookalikeParameters(_HOSTS, parameters.coverage)
        yield "lookalike", partial(make_lookalike_web, sized, seed)
    for name, old in WEBS.items() if seed == 0 else ():
        scaled = scale_web(old, _HOSTS, _REPLICATED, _PAGES)
        yield name, partial(_old_web, scaled, seed)


def _old_web(parameters: WebParameters, seed: int) -> LookalikeWeb:
    return rounds_web(make_web(parameters, seed))
