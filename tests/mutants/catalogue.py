"""Named faults in the science: each makes crawld say or do something that the research does not.

`make mutants` runs the tests on each. A fault that no test finds shows a test that is missing.
"""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.replica_catalogue import REPLICA_MUTANTS

_GREEDY = "crawld/core/revisit/policies_greedy.py"
_GREEDY_TESTS = ("tests/unit/core/revisit/test_policies_greedy.py",)
_CONTENDERS = "crawld/lab/contenders.py"
_SIMULATE_TESTS = ("tests/lab/test_simulate.py",)
_FREQUENCY_TESTS = ("tests/unit/core/revisit/test_policies_frequency.py",)
_WEBBASE_TESTS = ("tests/lab/test_webbase.py",)
_FRESHNESS_TESTS = ("tests/unit/core/revisit/test_freshness.py",)
_HAWKES = "crawld/core/change/hawkes.py"
_HAWKES_TESTS = ("tests/unit/core/change/test_hawkes.py",)
_BELIEF = "crawld/core/revisit/hint_belief.py"
_RATES_OF_KERNELS = (
    "        return tuple(w / tau for w, tau in zip(self.weights, KERNELS_S, strict=True))\n"
)
_RESIDUAL_LIVES = """    later, lives = np.geomspace(60.0, 1e8, 400), []
    for c in hypotheses[1:]:
        alive = [model.survival(c, since_s + wait) for wait in later]
        lives.append(np.trapezoid(np.array(alive), later, axis=0) / model.survival(c, since_s))
    earlier, latest = lives
"""
_BELIEF_TESTS = ("tests/unit/core/revisit/test_hint_belief.py",)
_QUIET = "crawld/core/revisit/quiet_copies.py"
_NOW_TESTS = ("tests/unit/core/revisit/test_freshness_now.py",)
_DIFFERENCE_TESTS = ("tests/unit/core/content/test_difference.py",)
_BOTH_DIRECTIONS = """    return max(
        one_way(left, right, block_bytes, max_steps), one_way(right, left, block_bytes, max_steps)
    )
"""

MUTANTS = (
    *REPLICA_MUTANTS,
    *(
        Mutant(
            f"the self-exciting model drops {name} kernel",
            _HAWKES,
            _RATES_OF_KERNELS,
            "        rates = [w / tau for w, tau in zip(self.weights, KERNELS_S, strict=True)]\n"
            f"        return tuple(0.0 if k == {index} else r for k, r in enumerate(rates))\n",
            _HAWKES_TESTS,
        )
        for index, name in enumerate(
            ("the burst", "the six hours'", "the ten days'", "the quarter's")
        )
    ),
    Mutant(
        "the fit of the self-exciting model learns nothing of the site",
        _HAWKES,
        "        caused = weights * (causes.T @ share)\n",
        "        caused = shared * exposure\n",
        _HAWKES_TESTS,
    ),
    Mutant(
        "reported pages rank by the mean time to their next change",
        _BELIEF,
        "    earlier, latest = (1.0 / model.hazard(c, since_s) for c in hypotheses[1:])\n",
        _RESIDUAL_LIVES,
        _BELIEF_TESTS,
    ),
    Mutant(
        "a hint counts as certain, whatever the trust in its source",
        _BELIEF,
        "    weights, hazards, excitement = _until(",
        "    trust = 1.0\n    weights, hazards, excitement = _until(",
        _BELIEF_TESTS,
    ),
    Mutant(
        "an open interval longer than all complete ones lasts to the last edge of the shape",
        "crawld/core/change/scale.py",
        "    return _with_tail(estimate, np.cumsum(begun[::-1])[::-1])\n",
        "    return estimate\n",
        ("tests/unit/core/change/test_scale.py",),
    ),
    Mutant(
        "one hint in ten of a new source may be false",
        "crawld/core/change/reliability.py",
        "    return Share(1.9, 0.1)\n",
        "    return Share(1.8, 0.2)\n",
        ("tests/unit/core/change/test_reliability.py",),
    ),
    Mutant(
        "waiting counts for a quarter of what it does at the start at least",
        "crawld/core/revisit/waiting_share.py",
        "for step in range(-4, 7))\n",
        "for step in range(-2, 7))\n",
        ("tests/unit/core/revisit/test_waiting_share.py",),
    ),
    Mutant(
        "waiting never counts for less than at the start, however right the model is",
        "crawld/core/revisit/waiting_share.py",
        "        return max(told / (self.visits + _PRIOR_SHARE), SHARES[0])\n",
        "        return max(told / (self.visits + _PRIOR_SHARE), ROUND_ROBIN_SHARE)\n",
        ("tests/unit/core/revisit/test_waiting_share.py",),
    ),
    Mutant(
        "the best pages are found anew at nearly every pick",
        "crawld/core/revisit/index_front.py",
        "_USED = 0.75\n",
        "_USED = 0.02\n",
        ("tests/unit/core/revisit/test_index_queue.py",),
    ),
    Mutant(
        "the value of a page is taken to grow as it did for longer than its table says",
        "crawld/core/revisit/index_front.py",
        "        self._redraw(at, at)\n",
        "        self._redraw(at, -math.inf)\n",
        ("tests/unit/core/revisit/test_index_queue.py",),
    ),
    Mutant(
        "a full shortlist of worse pages lowers the level that the others wait for",
        "crawld/core/revisit/index_queue.py",
        "        self._level = max(self._level, float(values[order[count]]))\n",
        "        self._level = float(values[order[count]])\n",
        ("tests/unit/core/revisit/test_index_queue.py",),
    ),
    Mutant(
        "pages that were pushed since the near end was sorted are due after it",
        "crawld/core/revisit/partial_heap.py",
        "        if pushed and pushed[0] <= last:\n",
        "        if pushed and place == end:\n",
        ("tests/unit/core/revisit/test_partial_heap.py",),
    ),
    Mutant(
        "a page of the near end that came in again has two places there",
        "crawld/core/revisit/partial_heap.py",
        "    if (keys[1:] == keys[:-1]).any():\n",
        "    if (keys[1:] < keys[:-1]).any():\n",
        ("tests/unit/core/revisit/test_partial_heap.py",),
    ),
    Mutant(
        "a visit to a page that calmed down buys no more than its last pace promises",
        "crawld/core/revisit/visit_value.py",
        "        if growth is not None:\n",
        "        if growth is None and share < 0.0:\n",
        ("tests/unit/core/revisit/test_visit_value.py",),
    ),
    Mutant(
        "the growth of the scale is not relative to what the shape promises",
        "crawld/core/change/scale_growth.py",
        "        growth[place] = np.log(mean / promised[place])\n",
        "        growth[place] = np.log(mean / promised[-1])\n",
        ("tests/unit/core/change/test_scale_growth.py",),
    ),
    Mutant(
        "the laboratory fits the models of a site to the year that is scored",
        "crawld/lab/scenario.py",
        "        past = self.histories.before(self.start)\n",
        "        past = self.histories.before(self.end)\n",
        _SIMULATE_TESTS,
    ),
    Mutant(
        "the laboratory counts a change as missed whose report is still under way",
        "crawld/lab/hints.py",
        "{each for each in found if each > self._told_until}",
        "set[float]()",
        _SIMULATE_TESTS,
    ),
    Mutant(
        "GREEDY divides by S(a) where it should not, and the reverse",
        _GREEDY,
        "        if self._conditional:\n",
        "        if not self._conditional:\n",
        _GREEDY_TESTS,
    ),
    Mutant(
        "GREEDY takes the waiting time for the gain",
        _GREEDY,
        "        gain = self._residual[slot] @ -np.diff(alive)\n",
        "        gain = _WAITS.astype(np.float32)\n",
        _GREEDY_TESTS,
    ),
    Mutant(
        "GREEDY takes every residual life for one second",
        _GREEDY,
        "        out[part] = np.where(apart >= 0, life, 0.0)\n",
        "        out[part] = np.where(apart >= 0, 1.0, 0.0)\n",
        _GREEDY_TESTS,
    ),
    Mutant(
        "the laboratory gives policies the year that is scored",
        _CONTENDERS,
        "    return scenario.start - YEAR_S, scenario.start\n",
        "    return scenario.start, scenario.end\n",
        _SIMULATE_TESTS,
    ),
    Mutant(
        "a visit of the laboratory finds the changes of the next day",
        "crawld/lab/copies.py",
        "        return changes[before:after]\n",
        "        return changes[before : bisect_right(changes, at + 86_400.0, before)]\n",
        _SIMULATE_TESTS,
    ),
    Mutant(
        "MERGE2 knows the whole period",
        _CONTENDERS,
        "        return scenario.start, min(scenario.start + _MONTH_S, scenario.end)\n",
        "        return scenario.start, scenario.end\n",
        _SIMULATE_TESTS,
    ),
    Mutant(
        "the laboratory runs MERGE for DELAYED",
        _CONTENDERS,
        '    return DelayedPolicy() if name.startswith("delayed") else MergePolicy()\n',
        "    return MergePolicy()\n",
        _SIMULATE_TESTS,
    ),
    Mutant(
        "WEBBASE scores MERGE for DELAYED",
        "crawld/lab/webbase.py",
        "searchsorted(pages, moved), moved_at, rate, f)",
        "searchsorted(pages, merged), merged_at, rate, f)",
        _WEBBASE_TESTS,
    ),
    Mutant(
        "WEBBASE scores DELAYED for MERGE",
        "crawld/lab/webbase.py",
        "searchsorted(pages, merged), merged_at, rate, f)",
        "searchsorted(pages, moved), moved_at, rate, f)",
        _WEBBASE_TESTS,
    ),
    Mutant(
        "WEBBASE scores RANDOM as 1/(1 + r)",
        "crawld/lab/webbase.py",
        "random_slot_freshness(web.change_rate[part] / used, p, 1.0).sum()",
        "(1.0 / (1.0 + web.change_rate[part] / used / p)).sum()",
        _WEBBASE_TESTS,
    ),
    Mutant(
        "the index takes all ages that a visit may find for equally good",
        "crawld/core/revisit/renewal_index.py",
        " + found @ solved[:-1]\n",
        " + 0.0 * solved[0]\n",
        ("tests/unit/core/revisit/test_renewal_index.py",),
    ),
    Mutant(
        "the value of a periodic page rises before its change",
        "crawld/core/revisit/renewal_index.py",
        "    order = 1e-9 * np.arange(len(prices))\n",
        "    order = 1e-9 * (np.arange(len(prices)) - len(prices))\n",
        ("tests/unit/core/revisit/test_visit_value.py",),
    ),
    Mutant(
        "the freshness of random slots is that of a Poisson process",
        "crawld/core/revisit/freshness.py",
        "        fresh = p * in_slot / (-np.expm1(-changes) + p * survive)\n",
        "        fresh = 1.0 / (1.0 + changes / p) + 0.0 * in_slot * survive\n",
        _FRESHNESS_TESTS,
    ),
    Mutant(
        "all pages have the same phase",
        "crawld/core/revisit/policies_frequency.py",
        'xxhash.xxh3_64_intdigest(page.to_bytes(8, "little", signed=True))',
        "(xxhash.xxh3_64_intdigest(b'') + 0 * page)",
        _FREQUENCY_TESTS,
    ),
    Mutant(
        "MERGE runs on the clock of the wall",
        "crawld/core/revisit/policies_frequency.py",
        "            due += interval\n        # An unscheduled",
        "            due = now + interval\n        # An unscheduled",
        _FREQUENCY_TESTS,
    ),
    Mutant(
        "the difference counts only what is new",
        "crawld/core/content/difference.py",
        _BOTH_DIRECTIONS,
        "    return one_way(left, right, block_bytes, max_steps)\n",
        _DIFFERENCE_TESTS,
    ),
    Mutant(
        "the difference counts only what is gone",
        "crawld/core/content/difference.py",
        _BOTH_DIRECTIONS,
        "    return one_way(right, left, block_bytes, max_steps)\n",
        _DIFFERENCE_TESTS,
    ),
    Mutant(
        "the detection of replicas puts each before all that are equal",
        "crawld/lab/replicas.py",
        "    reciprocal = 1.0 / (1 + over + rng.integers(0, ties + 1))\n",
        "    reciprocal = 1.0 / (1 + over + 0 * ties)\n",
        ("tests/lab/test_replicas.py",),
    ),
    Mutant(
        "the daemon allocates by rates, not by intervals",
        "crawld/daemon/jobs/allocation_reader.py",
        "        follows=follows,\n",
        "        follows=False,\n",
        ("tests/daemon/test_policies.py",),
    ),
    Mutant(
        "a fit counts pages without hints as unchanged until now",
        "crawld/core/revisit/policies_index.py",
        "        if self._coverage.missed_share > MOST_MISSED or slot == FREE:\n",
        "        if slot == FREE:\n",
        ("tests/unit/core/revisit/test_policies_index.py",),
    ),
    Mutant(
        "a fit takes all pages as known until the latest visit of any",
        "crawld/core/change/site_model.py",
        "np.concatenate(pages), np.array(until)\n",
        "np.concatenate(pages), max(until)\n",
        ("tests/unit/core/change/test_site_model.py", "tests/lab/test_refitting.py"),
    ),
    Mutant(
        "the repeated fit of the laboratory knows the scored period",
        "crawld/lab/refitting.py",
        "            self._known.append(times[times < scenario.start].tolist())\n",
        "            self._known.append(times.tolist())\n",
        ("tests/lab/test_refitting.py",),
    ),
    Mutant(
        "the laboratory allocates by rates, not by intervals",
        "crawld/lab/allocating.py",
        "            follows=True,\n",
        "            follows=False,\n",
        ("tests/lab/test_allocating.py",),
    ),
    Mutant(
        "a page that changes too often is given up",
        "crawld/core/revisit/host_allocation.py",
        "    return np.where(weight > 0, np.maximum(LEAST_SHARE * mean, asked), 0.0)\n",
        "    return np.where(weight > 0, asked, 0.0)\n",
        ("tests/unit/core/revisit/test_host_allocation.py",),
    ),
    Mutant(
        "old intervals do not fade",
        "crawld/core/change/model.py",
        "        self.bins = [count * kept for count in self.bins]\n",
        "",
        ("tests/unit/core/change/test_model.py",),
    ),
    Mutant(
        "overdue pages come in the order of the last visit, the newest first",
        "crawld/store/changes/allocation.py",
        "ORDER BY last_visit_at LIMIT ?",
        "ORDER BY last_visit_at DESC LIMIT ?",
        ("tests/daemon/jobs/test_refresh.py",),
    ),
    Mutant(
        "a shadow collection is shown page by page",
        "crawld/lab/crawl_modes.py",
        "np.asarray(begins + mode.active_s) if mode.shadow else visited",
        "visited",
        ("tests/lab/test_theory.py",),
    ),
    Mutant(
        "the upper bound of replicas knows the pairs it is scored on",
        "crawld/lab/replica_folds.py",
        "vectors.count_among(others & trial.truth)",
        "vectors.count_among(trial.truth)",
        ("tests/lab/test_replica_folds.py",),
    ),
    Mutant(
        "forecasts take the changes of a page for a Poisson process",
        "crawld/core/revisit/forecast.py",
        "    result = _curves_of_model(rate, model)\n",
        "    result = _curves_of_model(rate, type(model)(0.0, (0.0, 0.0, 0.0, 0.0)))\n",
        ("tests/lab/test_forecasting.py",),
    ),
    Mutant(
        "changes have no changes of their own",
        "crawld/core/change/quiet_time.py",
        "        through = known + (weights * (1.0 - mean))[:, None] * reached\n",
        "        through = 0.0 * known\n",
        ("tests/unit/core/change/test_quiet_time.py",),
    ),
    Mutant(
        "a page is unchanged with a constant rate",
        _HAWKES,
        "(math.exp(-before_s / tau_s) - math.exp(-now_s / tau_s))",
        "(now_s - before_s) / tau_s",
        _HAWKES_TESTS,
    ),
    Mutant(
        "the laboratory forecasts a year with the changes of that year",
        "crawld/lab/forecasting.py",
        "times[times < scenario.start], scenario.start",
        "times[times < scenario.end], scenario.end",
        ("tests/lab/test_forecasting.py",),
    ),
    Mutant(
        "changes of a long span count as if all were made at its end",
        "crawld/core/change/arrivals.py",
        "count * recent_s / span_s",
        "count",
        ("tests/unit/core/change/test_arrivals.py",),
    ),
    Mutant(
        "a quiet page keeps the rate that it had before it was silent",
        _QUIET,
        "(exposure_s + reported_share * self.covered_s)",
        "exposure_s",
        _NOW_TESTS,
    ),
    Mutant(
        "the models are right from the first minute on",
        _QUIET,
        "prior = new * _NEW_EXCESS_WEIGHTS + (1.0 - new) * _EXCESS_WEIGHTS",
        "prior = _EXCESS_WEIGHTS",
        _NOW_TESTS,
    ),
    Mutant(
        "old reports outweigh the models",
        "crawld/core/revisit/freshness_now.py",
        "            is_modelled = rng.random(DRAWS) < spans_s[0] / max(sum(spans_s), 1e-9)\n",
        "            is_modelled = rng.random(DRAWS) < 0.0 * spans_s[0]\n",
        _NOW_TESTS,
    ),
    Mutant(
        "copies that differ vary together as copies alike",
        "crawld/core/revisit/freshness_now.py",
        "/ alike if alike > 0.0 else 1.0",
        "/ alike if alike < 0.0 else 1.0",
        _NOW_TESTS,
    ),
    Mutant(
        "a burst lasts as long as nothing is reported",
        "crawld/core/revisit/freshness_now.py",
        "bursts = max(self._site.unreported_s / CHANGE_S, 1e-9)",
        "bursts = 1e-9",
        _NOW_TESTS,
    ),
    Mutant(
        "pages that were put up together have all changed then",
        "crawld/core/change/shared_dates.py",
        "    shared = only & (",
        "    shared = ~only & (",
        ("tests/unit/core/change/test_shared_dates.py",),
    ),
    Mutant(
        "a host's rate is what its first minutes show",
        "crawld/core/change/prior.py",
        "_UNKNOWN = Gamma(0.1, 0.1 * 30.0 * DAY_S)",
        "_UNKNOWN = Gamma(0.1, 60.0)",
        ("tests/unit/core/change/test_rate.py",),
    ),
)
