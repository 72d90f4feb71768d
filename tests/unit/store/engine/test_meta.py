from crawld.store.engine import meta


def test_a_key_has_its_last_value(connection):
    assert meta.get(connection, "rules") is None
    meta.put(connection, "rules", "1")
    meta.put(connection, "rules", "2")
    assert meta.get(connection, "rules") == "2"
