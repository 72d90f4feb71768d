"""Probing undecided pairs: more are decided, none wrongly, and no page is invented."""

from dataclasses import replace

import numpy as np

from crawld.core.replica.verdict import PairEvidence, is_undecided
from crawld.lab.probing import probe
from crawld.lab.replicas import gate_figures, run_trial
from crawld.simweb.replica_parameters import STANDARD, scale_web


def test_probing_decides_more_pairs_and_none_wrongly():
    trial = run_trial(scale_web(STANDARD, 2_000, 0.3, pages=20), 5)
    before, probed = gate_figures(trial), probe(trial, rounds=2)
    after = gate_figures(probed.trial)
    assert after["gated_recall"] > before["gated_recall"] + 0.03
    assert (before["false_prunings"], after["false_prunings"]) == (0, 0)
    # Every known page is fetched or still unfetched.
    web, then = trial.web, probed.trial.web
    assert len(then.hosts.page_host) == len(web.hosts.page_host) + probed.pages
    assert len(then.unfetched.host) == len(web.unfetched.host) - probed.pages
    assert 0 < probed.pages < 0.2 * len(web.hosts.page_host)
    both = (web.hosts.page_path, web.unfetched.path), (then.hosts.page_path, then.unfetched.path)
    assert (np.sort(np.concatenate(both[0])) == np.sort(np.concatenate(both[1]))).all()


def test_undecided_pairs():
    promising = PairEvidence(
        names=("a.test", "b.test"), pages=(20, 20), common=9, compared=4, equal=3, probability=0.5
    )
    assert is_undecided(promising)
    assert is_undecided(replace(promising, probability=None))
    assert not is_undecided(replace(promising, probability=0.02, equal=1))
    assert not is_undecided(replace(promising, common=20, compared=20, equal=19))
    assert not is_undecided(replace(promising, common=20, compared=20, equal=0))
    assert not is_undecided(replace(promising, canonicals=(20, 0)))
