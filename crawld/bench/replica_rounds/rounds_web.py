"""The webs of the rounds: that of look-alikes, and the older webs of replicas in its form.

Which savings are decidable without an operator is also decided here: a page of a copy may rest if
the copy has the registered domain of another of its group, or says itself that it is a copy.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from crawld.core.replica.groups import connected_groups
from crawld.core.replica.hosts import Ids
from crawld.core.url import private_suffix
from crawld.simweb.lookalike.host import NO_GROUP, PLAIN, LookalikeHost
from crawld.simweb.lookalike.pages import SitePages
from crawld.simweb.lookalike.web import LookalikeParameters, LookalikeWeb
from crawld.simweb.replica_host import page_target
from crawld.simweb.replica_web import ReplicaWeb

_DECLARED_SHARE = 0.67


def rounds_web(web: ReplicaWeb) -> LookalikeWeb:
    """Return a web of replicas as a web of look-alikes: its texts change as theirs do."""
    hosts = web.hosts
    seen = [_by_host(hosts.page_host, len(hosts)), _by_host(web.unfetched.host, len(hosts))]
    linked = _by_host((hosts.link_target % np.uint64(len(hosts))).astype(np.int64), len(hosts))
    made = []
    for number, name in enumerate(hosts.names):
        fetched, rest = seen[0][number], seen[1][number]
        path = np.concatenate((hosts.page_path[fetched], web.unfetched.path[rest]))
        text = np.concatenate((hosts.page_signature[fetched], web.unfetched.signature[rest]))
        first = np.sort(np.unique(path, return_index=True)[1])
        pages = SitePages.of([page_target(key) for key in path[first].tolist()], text[first])
        # No links: the pages that a copy has must not change the texts of the others.
        pages = replace(pages, links=((),) * len(pages))
        group = int(web.group[number])
        made.append(
            LookalikeHost(
                number=number,
                name=name,
                address=hosts.addresses[number],
                certificate=hosts.certificates[number],
                https=False,
                first_seen_day=-30.0 - number % 300,
                linked_from=tuple(
                    dict.fromkeys(
                        hosts.names[at] for at in hosts.link_host[linked[number]][:12].tolist()
                    )
                ),
                pages=pages,
                visited=(np.arange(len(path)) < len(fetched))[first],
                decoration=PLAIN,
                kind=web.cause[group].value if group >= 0 else "other",
                family=number,
                group=group if group >= 0 else NO_GROUP,
                original=False,
                keepable=True,
                owner=group if group >= 0 else len(web.cause) + number,
                victim=-1,
            )
        )
    _declare(made, web)
    return LookalikeWeb(LookalikeParameters(hosts=len(made)), tuple(made))


def _declare(made: list[LookalikeHost], web: ReplicaWeb) -> None:
    """Let the first pages of some hosts redirect, or name another host as canonical."""
    for (source, to), count in web.hosts.redirects.items():
        pages = made[source].pages
        first = np.arange(len(pages)) < count
        pages = replace(
            pages,
            text=np.where(first, np.uint64(0), pages.text),
            redirect_to=np.where(first, to, pages.redirect_to),
        )
        made[source] = replace(made[source], pages=pages)
    for (source, to), count in web.hosts.canonicals.items():
        pages = made[source].pages
        first = np.arange(len(pages)) < count
        pages = replace(pages, canonical_to=np.where(first, to, pages.canonical_to))
        made[source] = replace(made[source], pages=pages)


def _by_host(host: Ids, count: int) -> list[Ids]:
    order = np.argsort(host, kind="stable")
    return np.split(order, np.searchsorted(host[order], np.arange(1, count)))


def decidable_groups(web: LookalikeWeb) -> list[tuple[int, ...]]:
    """Return the hosts of each group of true copies whose direction needs no operator.

    Names of an attacker are no such group.
    """
    groups: dict[int, list[LookalikeHost]] = defaultdict(list)
    for host in web.hosts:
        if host.group != NO_GROUP and host.victim < 0:
            groups[host.group].append(host)
    pairs = []
    for members in groups.values():
        domains: dict[str, int] = {}
        inside = {host.number for host in members}
        for host in members:
            domain = private_suffix(host.name.partition(":")[0]) or host.name
            is_address = host.name.partition(":")[0].replace(".", "").isdigit()
            if not is_address:
                pairs.append((host.number, domains.setdefault(domain, host.number)))
            for named in (host.pages.redirect_to, host.pages.canonical_to):
                targets, counts = np.unique(named[named >= 0], return_counts=True)
                pairs += [
                    (host.number, to)
                    for to, count in zip(targets.tolist(), counts.tolist(), strict=True)
                    if to in inside and count >= _DECLARED_SHARE * len(named)
                ]
    return [group for group in connected_groups(pairs) if len(group) > 1]
