"""Patterns of URLs that a restart goes on with."""

from crawld.core.url_growth import KnownText, TextPiece, UrlPattern
from crawld.store.frontier import url_pattern
from crawld.store.frontier.url_pattern import change_of


def pattern(budget=3):
    known = KnownText()
    known.add([TextPiece(7, 100)])
    return UrlPattern("a.org", "/x?y", 70, 2, budget, 5, 1e9, known)


def test_what_was_stored_is_loaded(connection):
    stored = pattern()
    url_pattern.put(connection, [change_of("a.org", "/x?y", stored)])
    stored.budget = 0
    url_pattern.put(connection, [change_of("a.org", "/x?y", stored)])
    [loaded] = url_pattern.load(connection)
    assert (loaded.host, loaded.pattern, loaded.pages, loaded.fresh) == ("a.org", "/x?y", 70, 2)
    assert (loaded.budget, loaded.refused, loaded.probed_at) == (0, 5, 1e9)
    assert loaded.known.stored() == stored.known.stored()
    assert [each.budget for each in url_pattern.of_hosts(connection, ["b.org", "a.org"])] == [0]


def test_a_dropped_pattern_is_deleted(connection):
    url_pattern.put(connection, [change_of("a.org", "/x?y", pattern())])
    url_pattern.put(connection, [change_of("a.org", "/x?y", None)])
    assert url_pattern.load(connection) == []
