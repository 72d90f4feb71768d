"""Simulated hints: late, incomplete and partly false, like those of real sources.

`lag=60,miss=0.05,false=0.1,poll=600:0.1`: a change is reported `lag` seconds after it happens; a
share `miss` of the changes is never reported; a share `false` of all hints is false, at random
pages and times; with `poll`, hints arrive only at intervals of that many seconds, and the polls
take the given share of the slots.

The last change of each page before the start is reported at the start, so that the policy knows
since when the copies are stale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crawld.core.change.reliability import Reliability, match_hints
from crawld.core.revisit.policies import Policy
from crawld.core.revisit.policies_index import IndexPolicy
from crawld.errors import OperatorError
from crawld.lab.scenario import Scenario

_FORM = "Give --hints lag=60[,miss=0.05][,false=0.1][,poll=600:0.1]."


@dataclass(frozen=True, slots=True)
class HintOptions:
    """Properties of the simulated hints.

    Attributes:
        lag_s: from change to hint, seconds.
        miss: share of changes never reported. false: share of hints that are false. Both in [0, 1).
        poll_s: seconds between polls, 0 = pushed. poll_share: share of the slots polls take.
    """

    lag_s: float
    miss: float = 0.0
    false: float = 0.0
    poll_s: float = 0.0
    poll_share: float = 0.0

    def __str__(self) -> str:
        poll = f",poll={self.poll_s:g}:{self.poll_share:g}" if self.poll_s else ""
        return f"lag={self.lag_s:g},miss={self.miss:g},false={self.false:g}{poll}"

    @staticmethod
    def parse(text: str) -> HintOptions:
        """Parse the value of `--hints`.

        Raises:
            OperatorError: a part is unknown or out of range; the message shows the form.
        """
        names = {"lag": "lag_s", "miss": "miss", "false": "false"}
        values = {"lag_s": 0.0, "miss": 0.0, "false": 0.0, "poll_s": 0.0, "poll_share": 0.0}
        try:
            for part in text.split(","):
                name, _, value = part.partition("=")
                if name == "poll":
                    every, _, share = value.partition(":")
                    values["poll_s"], values["poll_share"] = float(every), float(share)
                else:
                    values[names[name]] = float(value)
        except (KeyError, ValueError) as error:
            raise OperatorError(f"cannot parse the hints {text!r}", hint=_FORM) from error
        shares = (values["miss"], values["false"], values["poll_share"])
        if not all(0.0 <= share < 1.0 for share in shares) or min(values.values()) < 0.0:
            raise OperatorError(f"the hints {text!r} are out of range", hint=_FORM)
        return HintOptions(**values)


class HintFeed:
    """The hints of one run, in order of arrival."""

    def __init__(self, scenario: Scenario, hints: HintOptions) -> None:
        rng = np.random.default_rng([scenario.seed, 5])
        page, changed = _draw_hints(scenario, hints, rng)
        arrival = changed + hints.lag_s
        if hints.poll_s:
            arrival = scenario.start + hints.poll_s * np.ceil(
                (arrival - scenario.start) / hints.poll_s
            )
        order = np.argsort(arrival, kind="stable")
        order = order[arrival[order] < scenario.end]
        self._page: list[int] = page[order].tolist()
        self._changed: list[float] = changed[order].tolist()
        self._arrival: list[float] = [*arrival[order].tolist(), np.inf]
        self._next = 0
        self._share = hints.poll_share
        self._start = scenario.start
        self._pending: dict[int, list[float]] = {}
        self.reliability = Reliability()

    def deliver(self, policy: Policy, at: float) -> None:
        """Pass arrived hints to the policy, with the current trust in their source."""
        while self._arrival[self._next] <= at:
            page, changed_at = self._page[self._next], self._changed[self._next]
            if changed_at < self._start:
                policy.record_hint(page, changed_at)
            else:
                self._pending.setdefault(page, []).append(changed_at)
                self.reliability.learn_lag(self._arrival[self._next] - changed_at)
                policy.record_hint(page, changed_at, trust=self.reliability.effective_trust)
            self._next += 1

    def record_visit(self, policy: Policy, page: int, changed_at: list[float]) -> None:
        """Match the changes a visit found with the hints, and update the policy's coverage."""
        reported = self._pending.pop(page, [])
        if changed_at and changed_at[0] < self._start:
            return
        self.reliability.learn_exact(match_hints(reported, changed_at, tolerance_s=1.0))
        if isinstance(policy, IndexPolicy):
            policy.set_coverage(self.reliability.effective_missed_share, self.reliability.lag_s())

    def takes_slot(self, slot: int) -> bool:
        """Whether a slot is used for polling; polls are evenly spread."""
        return int((slot + 1) * self._share) > int(slot * self._share)


def _draw_hints(
    scenario: Scenario, hints: HintOptions, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return page and time of every hint, of the last change before the start and of later ones."""
    histories = scenario.histories
    pages = np.repeat(np.arange(len(histories)), histories.counts)
    times = histories.changed_at
    inside = (times >= scenario.start) & (times < scenario.end)
    inside &= rng.random(times.size) >= hints.miss
    before = histories.changes_in(-np.inf, scenario.start)
    last = (histories.offsets[:-1] + before - 1)[before > 0]
    count = round(int(inside.sum()) * hints.false / (1.0 - hints.false))
    lies = rng.uniform(scenario.start, scenario.end, count)
    liars = rng.integers(0, len(histories), count)
    page = np.concatenate([pages[last], pages[inside], liars])
    return page, np.concatenate([times[last], times[inside], lies])
