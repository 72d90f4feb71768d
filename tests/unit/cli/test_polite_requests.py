"""The few requests of a command beside the crawl."""

import pytest

from crawld.cli.polite_requests import PoliteRequests
from crawld.errors import OperatorError
from crawld.net.fetcher import Fetcher
from crawld.net.resolver import FixedResolver
from crawld.simweb import fault
from crawld.simweb.graph import SiteGraph
from crawld.simweb.server import SimWeb
from crawld.simweb.site import SimSite


@pytest.fixture
async def site(nursery):
    """Return a function: the requests to a site with these faults, its origin and its ledger."""
    fetchers = []

    async def start(faults):
        simweb = SimWeb([SimSite(("a.test",), SiteGraph(3, seed=1), faults=faults)])
        listening = await nursery.start(simweb.serve)
        fetchers.append(
            Fetcher(user_agent="crawld", resolver=FixedResolver({"a.test": "127.0.0.1"}))
        )
        requests = PoliteRequests(
            fetchers[-1], "crawld", delay_s=0.0, permits_private=lambda host: host == "a.test"
        )
        return requests, f"http://a.test:{listening.port}", simweb.ledger

    yield start
    for fetcher in fetchers:
        await fetcher.aclose()


def targets(ledger):
    return [row.target for row in ledger.requests("a.test")]


async def test_robots_txt_is_fetched_once_for_a_chain_of_redirects(site):
    faults = {"/1": fault.redirect("/2"), "/2": fault.redirect("/")}
    requests, origin, ledger = await site(faults)
    url, response = await requests.get_page(f"{origin}/1")
    assert (url, response.status) == (f"{origin}/", 200)
    assert targets(ledger) == ["/robots.txt", "/1", "/2", "/"]


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"/1": fault.status(404)}, "has status 404"),
        ({"/1": fault.redirect("http://[")}, "no URL"),
        ({"/1": fault.redirect_loop()}, "more than 5 redirects"),
        (
            {
                "/1": fault.redirect("/2"),
                "/robots.txt": fault.body(
                    b"User-agent: *\nDisallow: /2", content_type="text/plain"
                ),
            },
            "forbids http://a.test:[0-9]*/2",
        ),
        ({"/robots.txt": fault.status(503)}, "robots.txt cannot be fetched"),
        ({"/1": fault.close_unanswered()}, "/1: "),
    ],
)
async def test_the_reason_is_named(site, faults, message):
    requests, origin, _ = await site(faults)
    with pytest.raises(OperatorError, match=message):
        await requests.get_page(f"{origin}/1")
