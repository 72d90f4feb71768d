"""URLs of a replica redirect to the canonical host; labels of charsets."""

from crawld.store.replica import replica
from crawld.web.mirror import charset_label
from tests.unit.store.twins import rest_agreeing
from tests.unit.web.conftest import NOW

KEPT, COPY = "https://example.org", "http://www.example.org"


def hosts(mirror):
    return dict(mirror.connection.execute("SELECT host, host_id FROM host").fetchall())


def prune(mirror, status="pruned"):
    known = hosts(mirror)
    copy, kept = known["www.example.org"], known["example.org"]
    connection = mirror.connection
    replica.put_replica(connection, copy, kept, status, "why", now=NOW, look_at=NOW)
    if status == "pruned":
        rest_agreeing(connection, copy, kept)


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


def test_charset_labels_of_browsers():
    codecs = ("cp1252", "iso8859-15", "koi8-r", "euc_jp", "cp932")
    assert [charset_label(codec) for codec in codecs] == [
        "windows-1252",
        "iso-8859-15",
        "koi8-r",
        "euc-jp",
        "shift_jis",
    ]
