"""What a mirror does for years leaves nothing in memory that only a garbage collection frees."""

import gc
from collections import Counter

from crawld.universe.draw import steady_plan
from crawld.universe.run_universe import run_universe

FROM_S, UNTIL_S = 14_400.0, 43_200.0
"""The garbage of these eight hours counts: the start of a daemon leaves some, once."""


class Garbage:
    """An event file that counts what has become garbage between two times, and what is kept."""

    def __init__(self):
        self.found = self.kept = None
        self._has_begun = False

    def write(self, line):
        at_s = float(line.split(" ", 1)[0])
        if at_s >= FROM_S and not self._has_begun:
            self._has_begun = True
            assert not gc.isenabled()
            gc.collect()
        if at_s >= UNTIL_S and self.found is None:
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            gc.set_debug(0)
            self.found = Counter(type(each).__name__ for each in gc.garbage)
            gc.garbage.clear()
            self.kept = Counter(type(each).__name__ for each in gc.get_objects())


def test_a_mirror_of_one_host_leaves_no_garbage_and_keeps_no_pages_to_compare(tmp_path):
    garbage = Garbage()
    plan = steady_plan(1, UNTIL_S / 86_400.0 + 0.01, sites=1, pages=12, host_delay_s=300.0)
    run_universe(plan, tmp_path, event_file=garbage)
    assert garbage.found == Counter()
    assert garbage.kept["PageColumns"] <= 1  # the empty one; hosts are compared with other hosts
