"""Keys in memory: what is certainly new, until they are too many."""

import pytest

from crawld.core.seen.key_set import KEY_BYTES
from crawld.core.seen.texts import TextBlock
from crawld.store.seen import seen
from crawld.store.seen.key_memory import KeyMemory
from crawld.store.seen.seen import SeenFile
from tests.unit.store.seen.test_seen import links_to, settled

URLS = [f"https://h{n % 7}.org/{n}" for n in range(100)]


def new(memory, connection, urls):
    keys = SeenFile.of(connection).keys(TextBlock.of(urls))
    return [urls[at] for at in memory.take_new(keys)]


def test_answers_come_at_once_until_the_keys_fill_their_memory(connection):
    memory = KeyMemory(KEY_BYTES * 80)
    assert new(memory, connection, URLS) == []  # not read yet
    memory.load(connection)
    for start in range(0, 100, 20):
        at_once = start <= 80
        assert (memory.keys is not None) == at_once
        found = new(memory, connection, URLS[: start + 20])
        assert found == (URLS[start : start + 20] if at_once else [])
    assert memory.keys is None


@pytest.mark.parametrize(("urls", "at_once"), [(0, False), (133, False), (134, True)])
def test_keys_are_read_if_they_fit(connection, urls, at_once):
    file = SeenFile.of(connection)
    settled(connection, file, URLS[:60])
    seen.put(connection, file, links_to(URLS[60:80]))
    seen.divide_some(connection)
    seen.put(connection, file, links_to(URLS[80:]))
    memory = KeyMemory(KEY_BYTES * urls)
    memory.load(connection)
    assert (memory.keys is not None) == at_once
    found = new(memory, connection, [*URLS, "https://new.org/", "https://new.org/"])
    assert found == (["https://new.org/"] if at_once else [])
