"""Hosts of visited pages, and the pages that their turns take."""

import numpy as np
import trio

from crawld.core.politeness import DelayRules
from crawld.core.revisit.policies import VisitObservation
from crawld.daemon.frontier.host import HostState
from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.revisit_queue import VisitedPages
from crawld.daemon.schedule.slots import HostSlot

NOW = 1_790_000_000.0
DAY_S = 86_400.0
SAME = VisitObservation(changed=False)
CHANGED = VisitObservation(changed=True)

PAGES = 40
"""Pages of each site; page 1 of site 2 is 1001."""


def make_host(sites=(1,), *, requisites=()):
    """Return a host whose pages were visited a day ago, and whose requisites are due in a day."""
    host = HostState(1, HostSlot("wiki.test", trio.current_time()))
    host.apply_rules([DelayRules(host_delay_s=1.0)])
    for site in sites:
        queue = PageQueue(site, 1, "index", discovery_share=0.5, min_revisit_s=3600.0)
        pages = 1000 * (site - 1) + np.arange(1, PAGES + 1, dtype=np.int64)
        queue.load_visited(VisitedPages(pages, NOW - DAY_S - np.arange(PAGES)[::-1]), NOW)
        queue.set_coverage(0.02, 5.0)
        host.pages[site] = queue
    if requisites:
        host.requisites[1] = PageQueue(
            1, 1, "uniform", discovery_share=0.5, min_revisit_s=3600.0, requisites=True
        )
        for page in requisites:
            host.requisites[1].load_retry(page, NOW + DAY_S)
    return host


def turns(host, count, *, active=frozenset({1, 2, 3}), share=0.3, at=NOW):
    """Return the pages of the next turns, a second apart."""
    found = []
    for number in range(count):
        taken = host.take(at + number, active, requisite_share=share)
        if taken is None:
            found.append(None)
            continue
        queue, page = taken
        found.append(page)
        if queue.requisites:
            queue.retry(page, at + DAY_S)
        else:
            queue.mark_recorded(page)
            queue.visited(page, at + number, CHANGED)
    return found
