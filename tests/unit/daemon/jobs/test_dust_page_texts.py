"""How pages compare of which one has no text."""

import pytest

from crawld.core.page import Outcome, PageState
from crawld.daemon.jobs.dust.page_texts import PageTexts, Sameness
from crawld.store.frontier.dust_page import SeenPage

GONE, SOFT_GONE, MOVED = Outcome.GONE, Outcome.SOFT_GONE, Outcome.MOVED
FAILED, SHOWN = Outcome.FAILED, Outcome.CHANGED


def page(outcome, redirect_url=None):
    version_id = 7 if outcome is SHOWN else None
    seen = (1, 1, "http://a.test/x", PageState.VISITED, 1.0, outcome)
    return SeenPage(*seen, version_id, None, redirect_url)


@pytest.mark.parametrize(
    ("outcomes", "sameness"),
    [
        ((GONE, GONE), Sameness.NOTHING),
        ((SOFT_GONE, GONE), Sameness.NOTHING),
        ((SHOWN, GONE), Sameness.DIFFERS),
        ((GONE, SHOWN), Sameness.DIFFERS),
        ((MOVED, GONE), Sameness.DIFFERS),
        ((GONE, MOVED), Sameness.DIFFERS),
        ((FAILED, SHOWN), Sameness.UNKNOWN),
        ((GONE, FAILED), Sameness.UNKNOWN),
    ],
)
async def test_what_is_absent_is_told_apart_from_what_differs(outcomes, sameness):
    texts = PageTexts.__new__(PageTexts)  # nothing is read where a text is missing
    compared = await texts.compare(*map(page, outcomes), frozenset())
    assert (compared.sameness, compared.digest) == (sameness, None)
