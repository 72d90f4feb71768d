"""Whatever the rules are, a URL costs a bounded number of steps."""

import pytest

from crawld.core import robots_rules
from crawld.core.robots import Robots
from crawld.core.robots_rules import FEW_GLOBS, LITERAL_BYTES, MAX_GLOBS, MAX_STEPS, RobotsRules
from tests.unit.steps import assert_linear, count_steps

TARGETS = ["/", "/x/y/z.html", "/a" * 500, "/x1x2x3x4", "/" + "x" * 3_000, "/?q=%C3%A9&x=1"]


def disallow(*texts):
    return RobotsRules((False, text) for text in texts)


def one_after_another(line, count):
    return disallow(*(line.replace("N", str(n)) for n in range(count)))


@pytest.mark.parametrize(
    "line",
    ["/pN", "/*xN", "/*x*$N", "/*N*x*$", "/q/*N", "/*" + "*a" * 300 + "N", "/*" + "a" * 200 + "bN"],
)
def test_a_url_costs_a_bounded_number_of_steps(line):
    rules = one_after_another(line, 3_000)
    most = 60 * MAX_STEPS
    assert max(count_steps(rules.allow, target) for target in TARGETS) < most


def test_a_chain_of_prefixes_is_climbed_in_few_steps():
    rules = disallow(*("/" + "a" * n for n in range(1, 1_000)))
    assert not rules.allow("/" + "a" * 500 + "b")
    assert rules.allow("/b")
    assert count_steps(rules.allow, "/" + "a" * 3 + "b") < 1_000


@pytest.mark.parametrize(
    "line",
    [
        *("Disallow: /pN", "Disallow: /*xN$", "allow:N", "Disallow: /%41%é%N", ":", "x y z"),
        *("User-agent: N", "Sitemap: /N", "Crawl-delay: N", "Request-rate: 1/N", "user-agent    "),
    ],
)
def test_a_file_is_read_in_linear_time(line):
    def file(count):
        return "\n".join(["User-agent: *", *(line.replace("N", str(n)) for n in range(count))])

    assert_linear(file, lambda text: Robots.parse(text, "crawld"), size=200)


@pytest.mark.parametrize("line", ["Disallow: /", "user-agent ", "Disallow: /*", "crawl-delay: "])
@pytest.mark.parametrize("filler", ["a", "*", "%41", " ", "$", "*a", ":", "9"])
def test_a_line_is_read_in_linear_time(line, filler):
    def file(count):
        return "User-agent: *\n" + line + filler * count + "x"

    assert_linear(file, lambda text: Robots.parse(text, "crawld"), size=2_000)


def test_a_long_url_is_matched_in_linear_time():
    rules = one_after_another("/*?keyN=", 100)
    assert_linear(lambda count: "/" + "%C3%A9?k" * count, rules.allow)


def test_globs_beyond_the_limit_close_what_is_before_their_star():
    texts = [f"/*k{n}=" for n in range(MAX_GLOBS)]
    rules = disallow(*texts, "/shop/*p=", "/x*")
    assert (rules.kept, rules.ignored) == (MAX_GLOBS + 1, 1)
    assert rules.allow("/page?q=1")
    assert not rules.allow("/page?k7=1")
    assert not rules.allow("/shop/all")
    assert not rules.allow("/x1")
    opened = RobotsRules([*((False, text) for text in texts), (False, "/s/*p="), (True, "/s/all")])
    assert not opened.allow("/s/all")


def test_the_memory_of_globs_counts():
    prefixes, globs = one_after_another("/pN", 500), one_after_another("/*N", 500)
    assert globs.size_bytes >= prefixes.size_bytes + 500 * LITERAL_BYTES


def test_allow_rules_beyond_the_limit_are_ignored():
    texts = [(False, f"/*k{n}=") for n in range(MAX_GLOBS)]
    rules = RobotsRules([*texts, (False, "/a"), (True, "/*b")])
    assert rules.ignored == 1
    assert not rules.allow("/ab")
    assert RobotsRules([(False, "/a"), (True, "/*b")]).allow("/ab")


def test_a_url_that_costs_too_many_steps_is_forbidden():
    # Every literal occurs, no rule matches.
    rules = one_after_another("/*name*yN", MAX_STEPS)
    assert rules.allow("/nam")
    assert not rules.allow("/name")
    assert one_after_another("/*name*yN", MAX_STEPS // 2 - 1).allow("/name")


def test_all_globs_are_matched_if_re2_has_no_memory(monkeypatch):
    rules = one_after_another("/*/cN/", FEW_GLOBS + 4)
    assert rules.allow("/a/c99/")
    assert not rules.allow("/a/c19/")
    monkeypatch.setattr(rules._literals, "_set", _Exhausted())
    assert rules.allow("/a/c99/")
    assert not rules.allow("/a/c19/")


class _Exhausted:
    """An RE2 set that is out of memory finds nothing, not even the empty text."""

    def Match(self, _):
        return None


def test_the_literals_of_the_most_globs_fit_into_the_memory_of_re2():
    length = robots_rules.LITERAL_LENGTH
    texts = [f"/*{n:04}{'abcdefghijklm'[n % 9]}{n * 7919 % 10**7:07}" for n in range(MAX_GLOBS)]
    rules = disallow(*(text + "x" * length for text in texts))
    assert rules._literals is not None
    assert rules._literals.possible("/" + texts[77] + "x" * length)
    assert not rules.allow("/" + texts[77][2:] + "x" * length)
