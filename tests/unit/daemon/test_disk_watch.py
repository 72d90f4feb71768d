"""The free space of a disk is checked as often as it could run out."""

import pytest

from crawld.daemon.disk_watch import CHECK_S, FILLED_BYTES_PER_S, MAX_CHECK_S, check_pause_s


@pytest.mark.parametrize(
    ("spare_bytes", "pause_s"),
    [
        (-1, CHECK_S),
        (0, CHECK_S),
        (20 * FILLED_BYTES_PER_S, 20.0),
        (10**15, MAX_CHECK_S),
    ],
)
def test_a_disk_cannot_fill_between_two_checks(spare_bytes, pause_s):
    assert check_pause_s(spare_bytes) == pause_s
