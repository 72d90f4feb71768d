"""Sketches of the hosts that a host links to."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crawld.core.replica.hosts import path_key
from crawld.core.replica.outlinks import MOST_KEYS, MOST_LINKS, linked_names, sketch_of

NONE = np.zeros(0, dtype=np.uint64)
names = st.lists(st.integers(0, 400).map(lambda number: f"h{number}.test"), max_size=300)


@given(names, st.integers(0, 300))
def test_a_sketch_does_not_depend_on_the_order_in_which_copies_are_read(some, cut):
    whole = sketch_of(NONE, some)
    parts = sketch_of(sketch_of(NONE, some[cut:]), some[:cut])
    assert whole.tolist() == parts.tolist()
    assert whole.tolist() == sorted({path_key(name) for name in some})[:MOST_KEYS]


def test_only_absolute_links_name_hosts():
    body = (
        b'<a href="/x"><a href=http://A.test/><a href=\'//b.test:8080/\'><a href="mailto:c@d.test">'
    )
    assert linked_names(body) == {"a.test", "b.test"}


def test_links_of_a_body_are_bounded():
    body = b"".join(b'<a href="//h%d.test">' % number for number in range(2 * MOST_LINKS))
    assert len(linked_names(body)) == MOST_LINKS
