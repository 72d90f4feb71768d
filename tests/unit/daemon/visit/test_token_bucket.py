"""How much time visits may spend on what a job would do later."""

import pytest

from crawld.daemon.visit.change_detection import MAX_SPARE_S, SPARE_SHARE, TokenBucket


def test_what_is_not_spent_is_saved_up_to_a_limit():
    spare = TokenBucket(100.0)
    assert spare.left_s(100.0) == spare.left_s(9_000.0) == MAX_SPARE_S
    spare.spend(MAX_SPARE_S)
    assert spare.left_s(9_000.0) == 0.0
    assert spare.left_s(9_001.0) == pytest.approx(SPARE_SHARE)
    assert spare.left_s(9_002.0) == pytest.approx(2 * SPARE_SHARE)


def test_a_crawl_in_a_hurry_loses_no_more_than_the_share():
    spare, spent_s, now = TokenBucket(0.0), 0.0, 0.0
    while now < 100.0:
        if spare.left_s(now) > 0.0:
            spare.spend(0.003)
            spent_s += 0.003
        now += 0.004
    assert spent_s <= SPARE_SHARE * 100.0 + MAX_SPARE_S + 0.003
    assert spent_s >= SPARE_SHARE * 100.0
