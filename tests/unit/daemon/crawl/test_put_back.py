"""Where pages go after their visits."""

from types import SimpleNamespace

import pytest

from crawld.core.page import Outcome
from crawld.daemon.crawl.visitor import Visitor


@pytest.mark.parametrize(
    ("outcome", "requisite", "tells_time"),
    [
        (Outcome.CHANGED, True, True),
        (Outcome.GONE, True, True),
        (Outcome.GONE, False, True),
        (Outcome.FAILED, False, False),
    ],
)
def test_the_request_for_a_requisite_is_compared_with_reports_of_another_one(
    outcome, requisite, tells_time
):
    settings = SimpleNamespace(once=False)
    visitor = SimpleNamespace(_state=SimpleNamespace(settings=settings))
    visit = SimpleNamespace(
        page=SimpleNamespace(page_id=7, requisite=requisite),
        judgement=SimpleNamespace(outcome=outcome),
        retry_at=90.0,
        asked_at=30.0,
    )
    queue = SimpleNamespace(retry=lambda page, retry_at, **_: None)
    put_back = Visitor._put_back_call(visitor, queue, visit, None, again=False)
    assert put_back.args == (7, 90.0)
    assert put_back.keywords == ({"gone_at": 30.0} if tells_time else {})
