"""A daemon mirrors a real nginx that shows pages under many URLs by twelve causes.

A small site: 95 % of the duplicates are avoided on large ones only, see `tests.peer.dust_nginx`.
"""

from tests.peer.dust_nginx import run


def test_rules_are_learnt_on_a_real_server_and_merge_nothing_else(tmp_path):
    found = run(tmp_path, pages=40)
    assert found.wrong == []
    assert found.missed == []
    assert found.validation <= max(10, found.urls // 100)
    assert {"drop zid  article", "token 0  article", "unslash   article"} <= set(found.rules)
    assert found.fetched < found.urls
