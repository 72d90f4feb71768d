"""When hints are due that come to the policies of their pages."""

import math

import numpy as np

from crawld.daemon.frontier.page_queue import PageQueue
from crawld.daemon.frontier.revisit_queue import VisitedPages
from crawld.daemon.hints.delivery import _later
from crawld.store.changes.hint import AcceptedHint

NOW = 1_780_000_000.0


def test_a_change_that_a_slow_response_did_not_show_brings_a_visit():
    queue = PageQueue(1, 1, "index", discovery_share=0.5, min_revisit_s=0.0)
    queue.load_visited(VisitedPages(np.array([1]), np.array([NOW])), NOW)
    # The store accepts it: the response came nine seconds after the request.
    found = AcceptedHint(1, NOW - 3, NOW - 1, 1, NOW, None, None, 1)
    queue.add_hint(1, found.last_at, 1.0, due_at=NOW + 15)
    assert queue.due_at(NOW + 1) == math.inf
    queue.add_hint(1, _later(found), 1.0, due_at=NOW + 15)
    assert queue.due_at(NOW + 1) == NOW + 15
