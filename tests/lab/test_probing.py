"""Probing undecided pairs: more are decided, none wrongly, and no page is invented."""

import numpy as np

from crawld.lab.probing import probe
from crawld.lab.replicas import gate_figures, run_trial
from crawld.simweb.replica_parameters import STANDARD, scale_web


def test_probing_decides_more_pairs_and_none_wrongly():
    trial = run_trial(scale_web(STANDARD, 2_000, 0.3, pages=20), 5)
    probed, pages = probe(trial, rounds=2)
    before, after = gate_figures(trial), gate_figures(probed)
    assert after["gated_recall"] > before["gated_recall"] + 0.03
    assert (before["false_prunings"], after["false_prunings"]) == (0, 0)
    # Every known page is fetched or still unfetched.
    web, then = trial.web, probed.web
    assert len(then.hosts.page_host) == len(web.hosts.page_host) + pages
    assert len(then.unfetched.host) == len(web.unfetched.host) - pages
    assert 0 < pages < 0.2 * len(web.hosts.page_host)
    both = (web.hosts.page_path, web.unfetched.path), (then.hosts.page_path, then.unfetched.path)
    assert (np.sort(np.concatenate(both[0])) == np.sort(np.concatenate(both[1]))).all()
