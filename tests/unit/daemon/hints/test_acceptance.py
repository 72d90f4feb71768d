"""Parts of large results."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.daemon.hints import acceptance


@given(st.integers(0, 9), st.integers(0, 9))
def test_parts_keep_all_hints_in_order_and_are_full_but_the_last(pages, urls):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(acceptance, "STORED_AT_ONCE", 3)
        parts = acceptance._parts(list(range(pages)), list(range(100, 100 + urls)))
    assert [each for some, _ in parts for each in some] == list(range(pages))
    assert [each for _, some in parts for each in some] == list(range(100, 100 + urls))
    assert all(len(some) + len(others) == 3 for some, others in parts[:-1])
    assert sum(map(len, parts[-1])) <= 3
