"""What is counted of the pages of one replica."""

import pytest

from crawld.core.replica.sections import ReplicaPage, Standing
from crawld.daemon.jobs.replicas.section_plan import SectionPlan
from crawld.store.replica.replica import ReplicaRow

ROW = ReplicaRow(
    2, "www.a.test", 1, "a.test", "partly", "", 0.0, 0.0, 0, 0.0, 0, 0, None, 0
)  # fmt: skip


def counted(standing, known):
    plan = SectionPlan(ROW._replace(root=known), 9.0, 1, 1.0)
    plan.add(ReplicaPage(7, "/", standing, 5.0, 0, 0, 0.0, False))
    plan.add(ReplicaPage(8, "/a", Standing.AGREES, 5.0, 1, 0, 0.0, False))
    return plan.root


@pytest.mark.parametrize(
    ("standing", "known", "root"),
    [
        (Standing.AGREES, 0, True),
        (Standing.DIFFERS, None, False),
        # A root page that waits for its twin counts as before: a verdict that depends on it would
        # end and begin again with each of its visits.
        (Standing.UNCOMPARED, 0, False),
        (Standing.UNCOMPARED, 1, True),
        (Standing.UNCOMPARED, None, None),
        (Standing.UNVISITED, 1, None),
    ],
)
def test_a_root_page_that_is_not_decided_again_counts_as_it_did(standing, known, root):
    assert counted(standing, known) is root
