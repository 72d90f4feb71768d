"""The URLs of an origin as the dust job reads them."""

from crawld.core.page import PageState
from crawld.daemon.jobs.dust.origin_urls import MOST_URLS, OriginUrls
from crawld.store.frontier.dust_page import KnownUrl


def known(number, state=PageState.VISITED):
    visited = state is PageState.VISITED
    return KnownUrl(number, 1, f"http://a.test/{number}", state, visited, None)


def test_a_page_found_after_those_that_are_searched_is_visited_too():
    """What stands for a URL is often found late: a trial must not ask for its visit again."""
    urls = OriginUrls(map(known, range(MOST_URLS + 2)))
    assert urls.searched() == [f"/{number}" for number in range(MOST_URLS)]
    assert urls.is_visited(f"/{MOST_URLS + 1}")
    assert not urls.is_visited(f"/{MOST_URLS + 2}")


def test_hidden_and_new_pages_are_not_visited():
    urls = OriginUrls([known(1, PageState.SUSPENDED), known(2, PageState.DISCOVERED)])
    assert not urls.is_visited("/1")
    assert not urls.is_visited("/2")
    assert urls.searched() == ["/1", "/2"]
