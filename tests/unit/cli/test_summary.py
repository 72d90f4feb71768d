"""The counts of a mirror, and when it is complete."""

from collections import Counter

import pytest

from crawld.cli.summary import MirrorSummary
from crawld.core.page import Failure, Outcome, PageState
from crawld.store.frontier.page import PageRecord

BARE = {"url": "http://h/", "state": PageState.VISITED, "depth": 1, "seed": False}
PAGE = PageRecord(**(dict.fromkeys(PageRecord._fields) | BARE))


@pytest.mark.parametrize(
    ("changed", "complete", "failed"),
    [
        ({"last_outcome": Outcome.CHANGED}, True, {}),
        ({"last_outcome": Outcome.GONE}, True, {}),
        ({"last_outcome": Outcome.FAILED, "last_failure": Failure.TIMEOUT}, False, {"timeout": 1}),
        (
            {"last_outcome": Outcome.BLOCKED, "last_failure": Failure.RATE_LIMITED},
            False,
            {"rate_limited": 1},
        ),
        ({"last_outcome": Outcome.FAILED, "last_failure": Failure.WRONG_TYPE}, True, {}),
        ({"last_outcome": Outcome.BLOCKED, "last_failure": Failure.ROBOTS}, True, {}),
        ({"state": PageState.EXCLUDED, "last_failure": Failure.ROBOTS}, True, {}),
        ({"state": PageState.DISCOVERED}, False, {}),
        ({"state": PageState.DISCOVERED, "depth": 3}, True, {}),
        ({"state": PageState.DISCOVERED, "depth": 3, "seed": True}, False, {}),
    ],
)
def test_when_a_mirror_is_complete(changed, complete, failed):
    summary = MirrorSummary()
    summary.add([PAGE, PAGE._replace(**changed)], max_depth=2)
    assert (summary.complete, summary.failed) == (complete, Counter(failed))


def test_a_mirror_of_nothing_is_not_complete():
    assert not MirrorSummary().complete
