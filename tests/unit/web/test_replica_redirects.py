"""URLs of a replica with suspended pages redirect to the canonical host."""

from crawld.store.replica import pages, replica

NOW = 1_780_000_000.0
KEPT, COPY = "https://example.org", "http://www.example.org"


def hosts(mirror):
    return dict(mirror.connection.execute("SELECT host, host_id FROM host").fetchall())


def prune(mirror, status="pruned"):
    known = hosts(mirror)
    copy, kept = known["www.example.org"], known["example.org"]
    connection = mirror.connection
    replica.put_replica(connection, copy, kept, status, "why", now=NOW, look_at=NOW)
    if status == "pruned":
        pages.suspend(connection, copy, kept, pages.BEFORE_FIRST, visited_since=0.0)


def both(mirror, path, text="<p>same"):
    mirror.page(f"{KEPT}{path}", text)
    mirror.page(f"{COPY}{path}", text)


def test_a_url_of_a_replica_redirects_to_the_canonical_host(mirror, header_of):
    both(mirror, "/a")
    mirror.page(f"{COPY}/only-there", "<p>own")
    prune(mirror)
    moved = mirror.get("/http/www.example.org/a")
    assert (moved.status, header_of(moved, "location")) == (302, "/https/example.org/a")
    # Unknown on the replica, but known on the canonical host.
    mirror.page(f"{KEPT}/new", "<p>new")
    assert mirror.get("/http/www.example.org/new").status == 302
    assert b"own" in mirror.get("/http/www.example.org/only-there").body


def test_old_versions_of_a_replica_are_shown(mirror):
    both(mirror, "/a")
    prune(mirror)
    assert mirror.get("/@v2/http/www.example.org/a").status == 200


def test_a_held_verdict_redirects_nothing(mirror):
    both(mirror, "/a")
    prune(mirror, status="held")
    assert mirror.get("/http/www.example.org/a").status == 200
