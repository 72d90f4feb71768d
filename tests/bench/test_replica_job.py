"""The verdicts of a daemon against the truth of the simulated web."""

from crawld.bench.replica_job import wrong_verdicts
from crawld.simweb.replica_parameters import STANDARD, scale_web
from crawld.simweb.replica_web import make_web


def test_verdicts_name_hosts_with_their_port():
    web = make_web(scale_web(STANDARD, 60, 0.5, 5), 1)
    of_group = {}
    for name, group in zip(web.hosts.names, web.group.tolist(), strict=True):
        of_group.setdefault(group, []).append(f"{name}:8080")
    lone = of_group.pop(-1)
    groups = list(of_group.values())
    right = (groups[0][0], groups[0][1])
    wrong = [(groups[0][0], groups[1][0]), (lone[0], lone[1])]
    assert wrong_verdicts(web, [right]) == 0
    assert wrong_verdicts(web, [right, *wrong]) == 2
