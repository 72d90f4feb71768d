"""robots.txt rules: our matcher and directives agree with protego's."""

from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from crawld.core import robots_rules
from crawld.core.robots import Robots, deciding_line
from crawld.core.robots_rules import FEW_GLOBS, RobotsRules

ORIGIN = "http://a.org"
PIECES = st.sampled_from(
    [
        *("/ab*$?=&.;%~é"),
        *("/a", "aa", "ab", "**", "%2F", "%2f", "%61", "%E9", "%C3%A9", "%2A", "%24", "%25"),
        *("%zz", "//", "http://", "index.html", "/index.html", " "),
    ]
)
# What a canonical URL may contain.
URL_PIECES = st.sampled_from(
    [*"/ab*$?=&.;~", "/a", "aa", "ab", "%2F", "%C3%A9", "%E9", "%25", "%24", "index.html", "//"]
)
PATTERNS = st.lists(PIECES, min_size=1, max_size=8).map("".join).filter(lambda text: text.strip())
RULES = st.lists(st.tuples(st.booleans(), PATTERNS.map(str.strip)), max_size=12)
TARGETS = st.lists(URL_PIECES, max_size=12).map(lambda pieces: "/" + "".join(pieces))


def protego(rules):
    lines = (f"{'Allow' if allow else 'Disallow'}: {text}" for allow, text in rules)
    return Protego.parse("\n".join(("User-agent: *", *lines)))


def disagreements(rules, targets):
    ours, theirs = RobotsRules(rules), protego(rules)
    return [
        target
        for target in targets
        if target != "/robots.txt" and ours.allow(target) != theirs.can_fetch(ORIGIN + target, "*")
    ]


@settings(max_examples=400)
@given(RULES, st.lists(TARGETS, min_size=1, max_size=8))
def test_any_rules_decide_as_those_of_protego(rules, targets):
    assert disagreements(rules, targets) == []


@given(st.lists(st.tuples(st.booleans(), st.text("ab*", min_size=1, max_size=9)), max_size=60))
def test_many_rules_decide_as_those_of_protego(rules):
    rules = [(allow, "/" + text) for allow, text in rules]
    targets = ["/" + text for text in ("", "a", "ab", "ba", "aab", "abab", "bbaabb", "a" * 12)]
    assert disagreements(rules, targets) == []


@given(st.lists(st.text("ab", max_size=6), min_size=FEW_GLOBS + 1, unique=True), TARGETS)
def test_literals_hide_no_rule(texts, target):
    rules = [(False, f"/*{text}*{text}*x") for text in texts]
    assert disagreements(rules, [target, target + "x", f"/{texts[0]}{texts[0]}x"]) == []


@given(RULES, TARGETS)
def test_rules_beyond_the_limit_never_open_a_url(rules, target):
    limit = robots_rules.MAX_GLOBS
    whole = RobotsRules(rules)
    try:
        robots_rules.MAX_GLOBS = 1
        cut = RobotsRules(rules)
    finally:
        robots_rules.MAX_GLOBS = limit
    assert whole.allow(target) or not cut.allow(target)
    assert whole.ignored == 0
    assert cut.kept + cut.ignored == whole.kept


@given(RULES, TARGETS)
def test_the_deciding_line_decides(rules, target):
    lines = [
        "User-agent: *",
        *(f"{'Allow' if allow else 'Disallow'}: {text}" for allow, text in rules),
    ]
    url, agent = ORIGIN + target, "crawld"

    def allowed(kept):
        return Robots.parse("\n".join(kept), agent).allowed(url)

    found = deciding_line("\n".join(lines), agent, url)
    if target == "/robots.txt":
        return
    if found is None:
        assert allowed(lines)
        return
    at = found.number - 1
    assert found.allows == allowed(lines)
    assert found.text == lines[at].partition("#")[0].strip()
    # Alone it decides the same; without it and its repetitions another line does, or none.
    assert allowed([lines[0], lines[at]]) == found.allows
    rest = [line if line.split(":", 1)[1:] != lines[at].split(":", 1)[1:] else "" for line in lines]
    other = deciding_line("\n".join(rest), agent, url)
    assert other is None or other.number != found.number


DIRECTIVES = st.sampled_from(
    [
        *("Disallow", "allow", "DISALOW", "Crawl-delay", "crawl delay", "Request-rate"),
        *("visit time", "Noindex", "Host", ""),
    ]
)
SEPARATORS = st.sampled_from([":", ": ", " : ", " ", "  ", ""])
VALUES = st.sampled_from(
    [
        *("", "/", "/a", "/a b", "/a:b", "/a: b", "*", "1", "0.5", "-1", "nan", "1e400"),
        *("1/5", "10/1m", "1/5x", "/5", "1/", "1/2/3", "1_0/5", "1/0h", "1/1h"),
        *("1/5 0900-1700", "1/5 9-1", "1/5 a b", "0400-0845", "0400 0845"),
        *("2500-0100", "400-845", "0400-0400"),
    ]
)


@given(st.lists(st.tuples(DIRECTIVES, SEPARATORS, VALUES).map("".join), max_size=8))
def test_directives_are_read_as_protego_reads_them(lines):
    text = "\n".join(("User-agent: *", *lines))
    ours, theirs = Robots.parse(text, "crawld"), Protego.parse(text)
    for target in ("/", "/a", "/a%20b", "/a:b", "/a:%20b", "/b"):
        assert ours.allowed(ORIGIN + target) == theirs.can_fetch(ORIGIN + target, "*")
    rate, visits = theirs.request_rate("*"), theirs.visit_time("*")
    assert ours.crawl_delay_s == theirs.crawl_delay("*")
    assert ours.request_rate_delay_s == (None if rate is None else rate.seconds / rate.requests)
    if visits is None or visits.start_time == visits.end_time:
        assert ours.visit_time is None
    else:
        spans = [at.hour * 3_600 + at.minute * 60 for at in (visits.end_time, visits.start_time)]
        assert ours.visit_time == tuple(spans)
