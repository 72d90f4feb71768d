import pytest

from crawld.core.hosts import host_patterns


@pytest.mark.parametrize(
    ("patterns", "meant", "not_meant"),
    [
        ((), (), ("a.test", "")),
        (("a.test",), ("a.test",), ("b.a.test", "xa.test")),
        (("*.a.test",), ("b.a.test", "c.b.a.test"), ("a.test", "ba.test")),
        (("*.a.test", "a.test"), ("b.a.test", "a.test"), ("c.test",)),
        (("*",), ("a.test", "192.0.2.1"), ()),
    ],
)
def test_patterns_match_their_hosts_only(patterns, meant, not_meant):
    hosts = host_patterns(patterns)
    assert [host in hosts for host in meant] == [True] * len(meant)
    assert [host in hosts for host in not_meant] == [False] * len(not_meant)
