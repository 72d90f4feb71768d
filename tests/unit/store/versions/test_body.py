import os
import threading
import tracemalloc

import apsw
import pytest

from crawld.errors import CorruptDatabaseError
from crawld.store.versions import body


@pytest.mark.parametrize("content", [b"", b"x", b"<p>page</p>" * 3000, os.urandom(5000)])
def test_a_body_is_decoded_unchanged(connection, content):
    body_id = body.ensure(connection, body.encode(content))
    assert body.read(connection, body_id) == content


def test_text_is_compressed_and_noise_is_not():
    text, noise = body.encode(b"<p>page</p>" * 3000), body.encode(os.urandom(5000))
    assert (text.encoding, noise.encoding) == ("zstd", "identity")
    assert len(text.data) < text.size_bytes / 10
    assert len(noise.data) == noise.size_bytes


def test_a_packed_body_holds_little_more_memory_than_its_bytes():
    content = b"<p>page</p>" * 3000 + os.urandom(2000)
    base = content + b"more"
    body.encode(content), body.encode_delta(content, base)  # makes the compressors
    tracemalloc.start()
    try:
        held = [body.encode(content).data for _ in range(20)]
        held += [body.encode_delta(content, base) for _ in range(20)]
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken_bytes < 1.5 * sum(map(len, held)) + 200 * len(held)


def test_equal_bodies_are_stored_once(connection):
    first = body.ensure(connection, body.encode(b"same" * 100))
    assert body.ensure(connection, body.encode(b"same" * 100)) == first
    assert body.ensure(connection, body.encode(b"other" * 100)) != first
    assert connection.execute("SELECT count(*) FROM body").get == 2


def test_threads_encode_at_the_same_time():
    contents = [b"%d <p>page</p>" % number * 2000 for number in range(40)]
    failed = []

    def work():
        for content in contents:
            encoded = body.encode(content)
            if body.decode(encoded.encoding, encoded.size_bytes, encoded.data) != content:
                failed.append(content)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.parametrize("damage", [lambda d: d[:-3], lambda d: b"junk" + d, lambda d: b""])
def test_damaged_bytes_are_an_error(connection, damage):
    encoded = body.encode(b"<p>page</p>" * 3000)
    body_id = body.ensure(connection, encoded)
    connection.execute("UPDATE body SET data = ?", (damage(encoded.data),))
    with pytest.raises(CorruptDatabaseError):
        body.read(connection, body_id)


def test_a_missing_body_is_none(connection):
    assert body.read(connection, 7) is None


LARGE = os.urandom(3_000_000)


def peak_bytes(call):
    """Return what a call returns, and the most memory that SQLite took meanwhile."""
    before = apsw.memory_used()
    apsw.memory_high_water(True)
    result = call()
    return result, apsw.memory_high_water() - before


def test_sqlite_copies_no_large_body(connection):
    connection.execute("PRAGMA cache_size = -64")
    encoded = body.encode(LARGE)
    body_id, taken_bytes = peak_bytes(lambda: body.ensure(connection, encoded))
    content, read_bytes = peak_bytes(lambda: body.read(connection, body_id))
    assert content == LARGE
    assert max(taken_bytes, read_bytes) < len(LARGE) / 4


def test_a_large_body_is_replaced_by_its_delta_and_back(connection):
    base_id = body.ensure(connection, body.encode(LARGE))
    changed = LARGE[:-1] + bytes([LARGE[-1] ^ 1])
    body_id = body.ensure(connection, body.encode(changed))
    delta = body.encode_delta(changed, LARGE)
    body.put_encoding(connection, body_id, body.ZSTD, base_id, delta)
    assert body.read(connection, body_id) == changed
    body.put_encoding(connection, body_id, body.IDENTITY, None, changed)
    assert body.read(connection, body_id) == changed
    assert connection.execute("SELECT base_id FROM body WHERE body_id = ?", (body_id,)).get is None


def test_a_body_that_is_gone_gets_no_encoding(connection):
    body.put_encoding(connection, 7, body.IDENTITY, None, LARGE)
    assert body.read(connection, 7) is None


def test_only_a_large_body_is_stored_apart(connection):
    small, large = (body.encode(LARGE[:size]) for size in (100_000, 1_000_000))
    assert [*body.ensure_in_parts(connection, small)] == []
    (apart,) = body.ensure_in_parts(connection, large)
    apart()
    assert connection.execute("SELECT count(*) FROM body").get == 2
