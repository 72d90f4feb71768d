"""The limit of open files is divided, and never exceeded."""

import pytest

from crawld.daemon.process import (
    COLLECTOR_THRESHOLDS,
    FILES_PER_LOOKUP,
    OPEN_FILES_KEPT,
    share_files,
)

WANTED = {"lookups": 32, "control": 256, "web": 1_024}


@pytest.mark.parametrize("limit", [80, 128, 256, 512, 1_024, 4_096, 65_536])
def test_the_shares_fit_into_the_limit(limit):
    shares = share_files(limit, **WANTED)
    used = shares.outbound + shares.control + shares.web + FILES_PER_LOOKUP * shares.lookups
    assert used + OPEN_FILES_KEPT <= limit
    assert shares.outbound >= (limit - OPEN_FILES_KEPT) // 2
    assert min(shares.lookups, shares.control, shares.web) >= 1


def test_a_high_limit_gives_everybody_what_is_wanted():
    shares = share_files(65_536, **WANTED)
    assert (shares.lookups, shares.control, shares.web) == (32, 256, 1_024)
    assert share_files(65_536, lookups=32, control=256, web=0).outbound > shares.outbound


def test_the_least_limit_leaves_something_for_everybody():
    shares = share_files(1, **WANTED)
    assert min(shares.outbound, shares.lookups, shares.control, shares.web) >= 1


def test_a_collection_of_young_objects_holds_the_interpreter_shortly():
    # Up to 2 us an object with cold caches.
    youngest, young, _ = COLLECTOR_THRESHOLDS
    assert youngest * (young + 1) <= 4_000
