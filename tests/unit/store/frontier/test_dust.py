from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule
from crawld.store import visit
from crawld.store.frontier import dust, dust_page, frontier
from crawld.store.frontier.dust_page import DustPageRow
from tests.unit.store.rows import NOW, changed, found

RULE = DustRule(Rewrite(RewriteForm.DROP, "sid"), "wiki")


def hide(connection, new, verdict):
    rows = [DustPageRow(one.page_id, one.url, "/x", verdict, NOW, None, "", None, 0) for one in new]
    dust_page.put(connection, new[0].origin_id, rows)
    return dust_page.hide(connection, [one.page_id for one in new])


def test_pages_never_visited_and_equal_ones_are_hidden_and_no_others(connection):
    new = frontier.discover(connection, [found(name) for name in "abcd"])
    [seed] = frontier.discover(connection, [found("seed", seed=True)])
    for one in new[:2]:
        visit.record(connection, changed(one.page_id, one.url.encode(), NOW))
    assert hide(connection, [seed], "hidden") == 0
    assert hide(connection, new[:1], "differs") == 0
    assert hide(connection, new[:1], "hidden") == 0
    assert hide(connection, new[1:2], "equal") == 1
    assert hide(connection, new[2:], "hidden") == 2
    origin_id = new[0].origin_id
    assert dust_page.count_hidden(connection) == {origin_id: 3}
    assert [one.page_id for one in dust_page.hidden(connection, origin_id, 0, 2)] == [
        new[1].page_id,
        new[2].page_id,
    ]


def test_the_word_of_the_operator_counts_before_the_status(connection):
    [page] = frontier.discover(connection, [found("a")])
    dust.add_trials(connection, page.origin_id, [RULE], NOW)
    dust.add_trials(connection, page.origin_id, [RULE], NOW + 9)
    [row] = dust.list_rules(connection)
    assert (row.rule, row.status, row.applies, row.since) == (RULE, "trial", False, NOW)
    dust.set_status(connection, row.dust_rule_id, "holds", NOW, NOW)
    dust.put_origin(connection, page.origin_id, ["wiki"], 7, NOW)
    [(origin, rules)] = dust.applied_rules(connection).items()
    [alone] = dust.applied_rules(connection, origin=origin).values()
    assert (alone.rules, alone.sections) == (rules.rules, rules.sections)
    assert dust.applied_rules(connection, origin="http://other.test") == {}
    assert (origin, rules.rules) == (row.origin, {RULE})
    assert rules.sections == {"wiki"}
    assert not dust.set_word(connection, row.dust_rule_id, "revoked", NOW).applies
    assert dust.applied_rules(connection) == {}
    dust.set_status(connection, row.dust_rule_id, "refused", NOW, 0.0)
    assert dust.set_word(connection, row.dust_rule_id, "confirmed", NOW).applies
    dust.drop_refused(connection, NOW + 1)
    assert len(dust.list_rules(connection)) == 1
    assert not dust.has_refused(connection, NOW + 1)
    dust.set_word(connection, row.dust_rule_id, None, NOW)
    assert dust.has_refused(connection, NOW + 1)
    dust.drop_refused(connection, NOW + 1)
    assert dust.list_rules(connection) == []
    assert dust.set_word(connection, 99, "revoked", NOW) is None
