from pathlib import Path

import pytest

from crawld.core.robots import (
    MAX_SITEMAPS,
    ROBOTS_MAX_BYTES,
    Robots,
    RobotsDirectives,
    RobotsLine,
    RobotsVerdict,
    deciding_line,
    judge_status,
    parse_robots_tags,
)

CORPUS = Path(__file__).parents[2] / "data" / "robots"
AGENT = "crawld/0.1.0 (+https://example.org/contact)"


def check(text, allowed=(), denied=(), agent=AGENT, **expected):
    found = Robots.parse(text, agent)
    for targets, verdict in ((allowed, True), (denied, False)):
        for target in targets:
            assert found.allowed(f"https://example.org{target}") is verdict, target
    assert found.allowed("https://example.org/robots.txt")
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("name", "allowed", "denied", "expected"),
    [
        # The file of RFC 9309 section 5.1, with its own explanation, for an agent it does not name.
        ("rfc9309_simple.txt", ["/example/page.html", "/x.png"], ["/y.gif"], {}),
        ("rfc9309_longest.txt", ["/example/page/"], ["/example/page/disallowed.gif"], {}),
        (
            "wiki.txt",
            ["/wiki/Web_crawler", "/w/load.php?x", "/api/rest_v1/?doc"],
            ["/w/index.php?title=A", "/wiki/Special:Log", "/wiki/Spezial%3ASuche", "/api/"],
            {"names_agent": False, "crawl_delay_s": 5.0},
        ),
        (
            "names_us.txt",
            ["/open", "/"],
            ["/w/api.php", "/closed"],
            {
                "names_agent": True,
                "crawl_delay_s": 2.5,
                "request_rate_delay_s": 6.0,
                "visit_time": (8 * 3_600 + 45 * 60, 4 * 3_600),
                "sitemaps": ("https://example.org/sitemap.xml", "https://example.org/news.xml"),
            },
        ),
        ("page.html", ["/", "/x"], [], {"names_agent": False, "sitemaps": ()}),
    ],
)
def test_corpus(name, allowed, denied, expected):
    check((CORPUS / name).read_bytes(), allowed, denied, **expected)


@pytest.mark.parametrize(
    ("agent", "allowed", "denied"),
    [
        ("foobot", ["/example/page.html", "/example/allowed.gif"], ["/x.html", "/example/a.gif"]),
        ("barbot", [], ["/example/page.html"]),
        ("bazbot", ["/x.html"], ["/example/page.html"]),
        ("quxbot", ["/", "/example/page.html"], []),
        ("other", ["/x.html"], ["/z.gif", "/example/"]),
    ],
)
def test_rfc_9309_section_5_1(agent, allowed, denied):
    check((CORPUS / "rfc9309_groups.txt").read_bytes(), allowed, denied, agent=agent)


ALL = "User-agent: *\n"


@pytest.mark.parametrize(
    ("text", "allowed", "denied"),
    [
        ("", ["/"], []),
        (ALL + "Disallow:", ["/"], []),
        (ALL + "Disallow: /", [], ["/", "/x"]),
        ("Disallow: /", ["/"], []),
        (ALL + "Disallow: /a\nAllow: /a/b", ["/a/b/c", "/b"], ["/a", "/a/c"]),
        (ALL + "Disallow: /a\nAllow: /a", ["/a"], []),
        (ALL + "Disallow: /*.pdf$", ["/x.pdf?y", "/pdf"], ["/x.pdf", "/a/b.pdf"]),
        (ALL + "Disallow: /*?", ["/x"], ["/x?y"]),
        (ALL + "Disallow: /é", ["/e"], ["/%C3%A9t%C3%A9"]),
        (ALL + "Disallow: /a%2Fb", ["/a/b"], ["/a%2Fb"]),
        (ALL + "Disallow: /X", ["/x"], ["/X"]),
        (ALL + "Disallow: /a # not /b", ["/b"], ["/a"]),
        (ALL + "Disallow: /robots.txt", ["/robots.txt"], ["/robots.txt/x"]),
        ("user agent *\ndisalow /a", ["/b"], ["/a"]),
        ("\r\nUSER-AGENT:*\rDISALLOW:/a\r\n", ["/b"], ["/a"]),
        ("User-agent: crawld\nDisallow: /a\n\n" + ALL + "Disallow: /", ["/b"], ["/a"]),
        ("User-agent: CRAWLD/9\nDisallow: /a\n" + ALL + "Disallow: /", ["/b"], ["/a"]),
        ("User-agent: crawld*\nDisallow: /a\n" + ALL + "Disallow: /", ["/b"], ["/a"]),
        ("User-agent: craw\nDisallow: /a\n" + ALL + "Disallow: /b", ["/a"], ["/b"]),
        ("User-agent: crawld-images\nDisallow: /a\n" + ALL + "Disallow: /b", ["/a"], ["/b"]),
        ("User-agent: crawld\nUser-agent: x\nDisallow: /a", ["/b"], ["/a"]),
        ("User-agent: x\nNoindex: /z\nUser-agent: crawld\nDisallow: /a", ["/b"], ["/a"]),
        ("User-agent: crawld\nSitemap: /s\nDisallow: /a", ["/b"], ["/a"]),
        ("User-agent: crawld\nDisallow: /a\nUser-agent: y\nDisallow: /b", ["/b"], ["/a"]),
        ("User-agent: crawld\nDisallow: /a\n" * 2 + "Disallow: /b", ["/c"], ["/a", "/b"]),
        ("User-agent: crawld\nDisallow:\n\n" + ALL + "Disallow: /", ["/"], []),
        (b"\xef\xbb\xbfUser-agent: *\nDisallow: /a", ["/b"], ["/a"]),
        ((ALL + "Disallow: /a").encode("utf-16"), ["/b"], ["/a"]),
        (b"User-agent: *\x00\nDis\x00allow: /a\x00", ["/b"], ["/a"]),
        (b"User-agent: *\nDisallow: /\xff\xfe\nDisallow: /a", ["/b"], ["/a"]),
        (ALL + "Disallow: /x\u2028Disallow: /a", ["/a"], ["/xDisallow:%20/a"]),
        (bytes(range(256)) * 400, ["/"], []),
        ("\ud800" + ALL + "Disallow: /a", ["/a"], []),
    ],
    ids=range(33),
)
def test_rules(text, allowed, denied):
    check(text, allowed, denied)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Crawl-delay: 10", {"crawl_delay_s": 10.0}),
        ("Crawl-delay: .5", {"crawl_delay_s": 0.5}),
        ("Crawl-delay: 1e9", {"crawl_delay_s": 1e9}),
        ("Crawl-delay: -1", {"crawl_delay_s": None}),
        ("Crawl-delay: nan", {"crawl_delay_s": None}),
        ("Crawl-delay: inf", {"crawl_delay_s": None}),
        ("Crawl-delay: soon", {"crawl_delay_s": None}),
        ("Request-rate: 1/5", {"request_rate_delay_s": 5.0}),
        ("Request-rate: 10/1m 0900-1700", {"request_rate_delay_s": 6.0}),
        ("Request-rate: 0/5", {"request_rate_delay_s": None}),
        ("Request-rate: 5/0", {"request_rate_delay_s": None}),
        ("Request-rate: many", {"request_rate_delay_s": None}),
        ("Visit-time: 0400-0845", {"visit_time": (31_500, 14_400)}),
        ("Visit-time: 2200-0600", {"visit_time": (21_600, 79_200)}),
        ("Visit-time: 0400-0400", {"visit_time": None}),
        ("Visit-time: 9999-1", {"visit_time": None}),
        ("Sitemap:/a.xml", {"sitemaps": ("/a.xml",)}),
        ("Sitemap /a.xml\nsitemap: /a.xml\nSitemap:", {"sitemaps": ("/a.xml",)}),
    ],
)
def test_extensions_of_the_rfc(line, expected):
    check(ALL + line, ["/"], **expected)


def test_a_file_is_cut_after_its_last_whole_line_within_the_limit():
    head = ALL.encode() + b"Disallow: /a\n"
    filler = b"#" * (ROBOTS_MAX_BYTES - len(head) - 20) + b"\n"
    # The cut falls inside "/abcdef...": half a rule would close more than the site asked.
    text = head + filler + b"Disallow: /abc" + b"d" * 50 + b"\nDisallow: /z\n"
    check(text, ["/z", "/b"], ["/a"])
    check(b"Disallow: /" * ROBOTS_MAX_BYTES, ["/"])


@pytest.mark.parametrize(
    ("line", "denied"),
    [
        (b"User-agent: x%d\n", []),
        (b"Disallow: /p%d\n", ["/p7", "/p20000"]),
        # Beyond the limit of rules with "*", everything from the text before the star is closed.
        (b"Disallow: /a/*a*b*c%d*$\n", ["/a/"]),
        (b"Allow: /*x*%d\n", []),
        (b"Sitemap: /%d\n", []),
    ],
)
def test_megabytes_of_rules_are_read_up_to_the_limit(line, denied):
    text = b"User-agent: *\nDisallow: /first\n" + b"".join(line % n for n in range(200_000))
    check(text, ["/x"], ["/first", *denied])
    assert len(Robots.parse(text, AGENT).sitemaps) in (0, MAX_SITEMAPS)


def test_open_and_closed():
    assert Robots.open().allowed("http://a.org/x")
    assert not Robots.closed().allowed("http://a.org/x")
    assert Robots.closed().allowed("http://a.org/robots.txt")


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, RobotsVerdict.RULES),
        (204, RobotsVerdict.RULES),
        (301, RobotsVerdict.CLOSED),
        (304, RobotsVerdict.CLOSED),
        (401, RobotsVerdict.OPEN),
        (403, RobotsVerdict.OPEN),
        (404, RobotsVerdict.OPEN),
        (410, RobotsVerdict.OPEN),
        (429, RobotsVerdict.CLOSED),
        (500, RobotsVerdict.CLOSED),
        (503, RobotsVerdict.CLOSED),
        (999, RobotsVerdict.CLOSED),
        (None, RobotsVerdict.CLOSED),
    ],
)
def test_judge_status(status, verdict):
    assert judge_status(status) is verdict


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], ""),
        (["all"], ""),
        (["noindex, nofollow"], "noindex nofollow"),
        (["NoFollow"], "nofollow"),
        (["none"], "noindex nofollow"),
        (["noarchive"], "noarchive"),
        (["noindex nofollow"], "noindex nofollow"),
        (["noarchive", "nofollow"], "noarchive nofollow"),
        (["otherbot: noindex, nofollow"], ""),
        (["crawld: nofollow"], "nofollow"),
        (["noindex, otherbot: nofollow"], "noindex"),
        (["otherbot: nofollow, crawld: noarchive"], "noarchive"),
        (["otherbot: nofollow", "noindex"], "noindex"),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow"], "nofollow"),
        (["max-snippet:20, max-image-preview: large, noarchive"], "noarchive"),
        (["", ",,:,;", "\x00", "x" * 100_000], ""),
    ],
)
def test_parse_robots_tags(values, expected):
    words = expected.split()
    assert parse_robots_tags(values, AGENT) == RobotsDirectives(
        nofollow="nofollow" in words, noindex="noindex" in words, noarchive="noarchive" in words
    )


LINES = """\
\ufeff# a comment

User-agent: other
Disallow: /

User-agent: *\r
Disallow: /private/  # not for you\r
Disallow: /private/
Allow: /private/ok
Disallow: /*.pdf$
"""


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("/private/x", RobotsLine(7, "Disallow: /private/", False)),
        ("/private/ok", RobotsLine(9, "Allow: /private/ok", True)),
        ("/a.pdf", RobotsLine(10, "Disallow: /*.pdf$", False)),
        ("/a.pdf?x", None),
    ],
)
def test_the_line_that_decides_is_numbered_as_in_the_file(target, line):
    assert deciding_line(LINES.encode(), AGENT, f"https://example.org{target}") == line


def test_the_lines_of_the_group_for_us_decide():
    named = LINES + "\nUser-agent: crawld\nDisallow: /x\n"
    url = "https://example.org/private/x"
    assert deciding_line(named, AGENT, url) is None
    assert deciding_line(named, AGENT, "https://example.org/x") == RobotsLine(
        13, "Disallow: /x", False
    )
