from crawld.core.dust.rewrite import Rewrite, RewriteForm
from crawld.core.dust.rules import DustRule, HostRules

LOWER = Rewrite(RewriteForm.LOWER)
DROP = Rewrite(RewriteForm.DROP, "sid")


def test_a_rule_holds_in_its_section_alone():
    rules = HostRules([DustRule(DROP, "wiki")], ["wiki", "shop"])
    found = rules.apply("http://a.org/wiki/x?sid=1&b=2")
    assert found.url == "http://a.org/wiki/x?b=2"
    assert found.used == (DustRule(DROP, "wiki"),)
    assert rules.apply("http://a.org/shop/x?sid=1") is None
    assert rules.apply("http://a.org/other?sid=1") is None


def test_two_spellings_of_a_section_are_one():
    rules = HostRules([DustRule(LOWER, "wiki"), DustRule(DROP, "wiki")], ["wiki"])
    assert rules.apply("http://a.org/Wiki/X?sid=1").url == "http://a.org/wiki/x"


def test_rules_that_do_not_settle_change_nothing():
    there, back = Rewrite(RewriteForm.REPLACE, "a", "b"), Rewrite(RewriteForm.REPLACE, "b", "a")
    turned = Rewrite(RewriteForm.REPLACE, "b", "ab")
    rules = HostRules([DustRule(there, ""), DustRule(turned, "")])
    assert rules.apply("http://a.org/a/x").url == "http://a.org/ab/x"
    growing = HostRules([DustRule(Rewrite(RewriteForm.REPLACE, "a", "a/a"), "")])
    assert growing.apply("http://a.org/a/x") is None
    assert HostRules([DustRule(there, ""), DustRule(back, "")]).apply("http://a.org/a/x") is None


def test_a_result_that_is_no_canonical_url_is_not_used():
    rules = HostRules([DustRule(Rewrite(RewriteForm.CUT, ";"), "")])
    assert rules.apply("http://a.org/..;x/b") is None
    assert rules.apply("http://a.org/y;x/b").url == "http://a.org/y/b"
