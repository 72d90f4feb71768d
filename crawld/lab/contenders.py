"""Prepares the policies of a simulation with data of the past, or with hindsight.

`uniform` and `random` use no data. `merge`, `delayed` and `random-f` follow the frequencies of the
daemon's job, which allocates again from what visits teach (`allocating.py`); with hindsight, those
of one allocation. `merge-past`, `delayed-past`, `proportional` and `unpolite` follow one allocation
from the histograms, or rates, of the year before; `merge-whole` from whole visits in the period, as
Wolf et al. allocate them. `greedy` uses histograms of the past; `greedy-sampled`
draws from them as the published program did, and continues to fill them. `index` uses change
models, continues to learn, and gets the fits of the daemon's job (`refitting.py`); `greedy-ncis`
knows the rates of the past, and how good the hints are. `relaxed` and `clairvoyant` are bounds for
hints (`relaxed.py`). `merge2` is MERGE with histograms of the first month of the period: hindsight,
as in the published experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from crawld.core.change.model import PageModel
from crawld.core.change.record import records_of
from crawld.core.revisit import allocation
from crawld.core.revisit.policies import Policy, UniformPolicy
from crawld.core.revisit.policies_frequency import (
    DelayedPolicy,
    MergePolicy,
    RandomPolicy,
    phase,
)
from crawld.core.revisit.policies_greedy import GreedyPolicy
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.core.revisit.registry import FOLLOW_FREQUENCIES, FrequencyPolicy
from crawld.core.revisit.renewal_allocation import allocate_renewal, allocate_whole_visits
from crawld.core.units import DAY_S, YEAR_S
from crawld.errors import OperatorError
from crawld.lab.allocating import RepeatedAllocation
from crawld.lab.hint_options import HintOptions
from crawld.lab.noisy_signals import NoisySignalsPolicy
from crawld.lab.refitting import RepeatedFit
from crawld.lab.sampled_greedy import SampledGreedy
from crawld.lab.scenario import Scenario
from crawld.plugins import PolicyFactory

Floats = NDArray[np.float64]

NAMES = (
    "uniform",
    "random",
    "random-f",
    "proportional",
    "merge",
    "merge-past",
    "merge-whole",
    "merge2",
    "delayed",
    "delayed-past",
    "unpolite",
    "greedy",
    "greedy-printed",
    "greedy-sampled",
    "greedy-sampled-printed",
    "index",
    "greedy-ncis",
    "relaxed",
    "clairvoyant",
)

BOUNDS = frozenset({"relaxed", "clairvoyant"})
"""Names that need hints of every change."""

HINDSIGHT = frozenset({"merge2", "clairvoyant"})
"""Policies that always use data of the period itself."""

_MONTH_S = 31 * DAY_S


@dataclass(frozen=True)
class Contender:
    """A policy and its data.

    Attributes:
        policy: the policy; None for visits at the ideal times.
        models: change models that the visits update, for a policy that learns from them.
        allocation: gives frequencies to the policy, for one that follows those of the daemon's job.
        fit: gives the policy models of its site, for one that uses them.
        frequency: allocated frequencies, per second; phases: of the ideal times.
    """

    policy: Policy | None
    models: list[PageModel] | None = None
    allocation: RepeatedAllocation | None = None
    fit: RepeatedFit | None = None
    frequency: Floats = field(default_factory=lambda: np.zeros(0))
    phases: Floats = field(default_factory=lambda: np.zeros(0))


def check_policy(name: str, added: Mapping[str, PolicyFactory]) -> None:
    """Check that there is a policy.

    Raises:
        OperatorError: there is not.
    """
    if name not in NAMES and name not in added:
        known = ", ".join((*NAMES, *sorted(each for each in added if ":" in each)))
        hint = f"Policies: {known}."
        if ":" in name and not any(":" in each for each in added):
            hint = "Name the config that has the plug-in: -c FILE. " + hint
        raise OperatorError(f"there is no policy named {name!r}", hint=hint)


def make_contender(
    name: str,
    scenario: Scenario,
    *,
    slot_s: float,
    hindsight: bool,
    hints: HintOptions | None = None,
    added: Mapping[str, PolicyFactory] = MappingProxyType({}),
) -> Contender:
    """Return a policy that holds the pages that exist at the start.

    Args:
        name: one of `NAMES` or `added`, and none of `BOUNDS`.
        slot_s: time between slots, seconds: the bandwidth is 1/slot_s.
        hindsight: use the period's own rates and histograms.
        hints: properties of the hints of the run; None: there are none.
        added: policies of plug-ins.
    """
    alive = np.flatnonzero(scenario.born_at <= scenario.start)
    if name not in NAMES:
        policy = added[name]()
        policy.load(alive)
        return Contender(policy, scenario.past_models())
    if name == "index":
        return _index(scenario, alive)
    if name in ("uniform", "random"):
        policy = UniformPolicy() if name == "uniform" else RandomPolicy(seed=scenario.seed)
        policy.load(alive)
        return Contender(policy)
    if name in FOLLOW_FREQUENCIES and not hindsight:
        return _reallocated(name, scenario, alive, slot_s)
    since, until = _known(name, scenario, hindsight=hindsight)
    if name == "greedy-ncis":
        return Contender(_noisy_signals(scenario, scenario.rates(since, until), hints, alive))
    if name.startswith("greedy-sampled"):
        conditional = name == "greedy-sampled"
        counts = scenario.interval_counts(since, until)
        policy = SampledGreedy(counts, conditional=conditional, seed=scenario.seed)
        policy.load(alive)
        return Contender(policy)
    if name.startswith("greedy"):
        renewals = scenario.renewals(since, until)
        policy = GreedyPolicy(conditional=name == "greedy")
        policy.load(alive)
        policy.set_renewals(np.arange(scenario.pages), renewals)
        return Contender(policy)
    frequency = _frequency(name, scenario, (since, until), 1.0 / slot_s)
    if name == "unpolite":
        phases = np.array([phase(page) for page in range(scenario.pages)])
        return Contender(None, frequency=frequency, phases=phases)
    follower = _follower(name, scenario)
    follower.load(alive)
    follower.set_frequencies(alive, frequency[alive])
    return Contender(follower)


def _follower(name: str, scenario: Scenario) -> FrequencyPolicy:
    if name == "random-f":
        return RandomPolicy(by_frequency=True, seed=scenario.seed)
    return DelayedPolicy() if name.startswith("delayed") else MergePolicy()


def _reallocated(
    name: str, scenario: Scenario, alive: NDArray[np.int64], slot_s: float
) -> Contender:
    """Return a policy that gets the frequencies of the daemon's job, from what visits teach."""
    models, policy = scenario.past_models(), _follower(name, scenario)
    policy.load(alive)
    return Contender(policy, models, RepeatedAllocation(policy, models, slot_s))


def _known(name: str, scenario: Scenario, *, hindsight: bool) -> tuple[float, float]:
    """Return the time range whose changes the policy knows."""
    if name == "merge2":
        return scenario.start, min(scenario.start + _MONTH_S, scenario.end)
    if hindsight:
        return scenario.start, scenario.end
    return scenario.start - YEAR_S, scenario.start


def _frequency(
    name: str, scenario: Scenario, known: tuple[float, float], bandwidth: float
) -> Floats:
    if name == "proportional":
        return allocation.proportional(scenario.rates(*known), bandwidth)
    renewals = scenario.renewals(*known)
    if name == "merge-whole":
        visits = int(bandwidth * scenario.duration_s)
        return allocate_whole_visits(renewals, visits, scenario.duration_s) / scenario.duration_s
    return allocate_renewal(renewals, bandwidth).frequency


def _noisy_signals(
    scenario: Scenario, rate: Floats, hints: HintOptions | None, alive: NDArray[np.int64]
) -> NoisySignalsPolicy:
    signalled = 0.0 if hints is None else 1.0 - hints.miss
    true_rate = signalled * scenario.changes / (scenario.pages * scenario.duration_s)
    false_rate = 0.0 if hints is None else true_rate * hints.false / (1.0 - hints.false)
    policy = NoisySignalsPolicy(rate, signalled=signalled, false_rate=false_rate)
    policy.load(alive)
    return policy


def _index(scenario: Scenario, alive: NDArray[np.int64]) -> Contender:
    models = scenario.past_models()
    policy = IndexPolicy(scenario.past_site())
    policy.load(alive)
    policy.set_models(alive, records_of(models[page].to_bytes() for page in alive.tolist()))
    return Contender(policy, models, fit=RepeatedFit(policy, models, scenario))
