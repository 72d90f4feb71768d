"""Lines of `crawlctl status` about limits of requests and bytes per second."""

import pytest

from crawld.cli.status_table import _limit_fact
from crawld.daemon.api.schemas.slots import RateLimitStatus


def limit(**more):
    held = {"max_requests_per_s": 0.5, "max_bytes_per_s": None, "hosts": 12, "opens_in_s": 0.3}
    return RateLimitStatus(**{"name": "[schedule]", "waiting": 0, **held, **more})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (limit(), "0.5 requests a second for 12 hosts, not reached"),
        (limit(waiting=1), "0.5 requests a second for 12 hosts, reached: 1 host waits for it"),
        (
            limit(waiting=7, max_bytes_per_s=100_000, opens_in_s=3_600.0),
            "0.5 requests a second and 97.7 KiB a second for 12 hosts, reached: 7 hosts wait for"
            " it, the next one for 1 h 00 min",
        ),
    ],
)
def test_a_limit_says_whether_it_is_what_limits(given, text):
    assert _limit_fact(given) == ("limit [schedule]", text)
