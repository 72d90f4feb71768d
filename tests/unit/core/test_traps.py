from datetime import UTC, datetime

import pytest

from crawld.core.traps import TrapLimits, detect_trap

NOW = datetime(2026, 11, 21, tzinfo=UTC).timestamp()
LIMITS = TrapLimits()
MD5 = "9e107d9d372bb6826bd81d3542a419d6"


def check(target, expected, limits=LIMITS):
    assert detect_trap(f"https://example.org{target}", limits, NOW) == expected


REAL = [
    "/",
    "/wiki/Web_crawler",
    "/wiki/Talk:AC%2FDC_(disambiguation)/Archive_3",
    "/wiki/2091",
    "/wiki/Buffalo_buffalo_Buffalo_buffalo_buffalo_buffalo_Buffalo_buffalo",
    "/wiki/User:A/User:A/sandbox",
    "/w/index.php?title=Web_crawler&action=history&offset=20070312000000%7C1234&limit=500",
    "/w/index.php?title=Special:Log&year=2007&month=3&type=delete",
    "/w/index.php?title=Web_crawler&oldid=1234567890&diff=prev",
    "/2007/03/12/title",
    "/2007/03/12/",
    "/2007/03/",
    "/1851/09/18/archives/the-new-york-daily-times.html",
    "/archive/1785/1/1/first-issue",
    "/archives/1851/09/",
    "/news/2026/11/21/article-1.html",
    "/events/2027/06/",
    "/events/2028/05/a-concert",
    "/blog/archives/2345/10",
    "/t/why-crawlers/5021/7",
    "/t/why-crawlers/2345/10",
    "/product/1200-05/",
    "/tiles/12/0/0/0.png",
    "/shards/00/00/00/00/file.tar",
    "/3/library/os.path.html",
    "/docs/en/latest/api/en/latest.html",
    "/projects/docs/en/docs/de/docs/index.html",
    "/javadoc/java.base/java/lang/java/lang.html",
    "/a/b/c/d/e/f/g/h/i/j/k.html",
    "/search?q=crawler&page=2&sort=date&filter[]=a&filter[]=b&filter[]=c&filter[]=d&filter[]=e",
    "/film?year=2091",
    "/map?x=120&y=200&z=3",
    "/login?sid=12",
    "/article?sid=31337&mode=thread",
    "/article?sid=an-article-about-something",
    "/shop?s=shoes",
    "/song?s=the-long-and-winding-road-to-nowhere",
    "/profile?session=spring-2026-conference",
    "/page;v=2?x;y",
    "/programme;jsessionid=off",
    "/ticket?date=120305",
    "/photos?date=2007-03-12",
    "/web/20070312000000/http://example.org/2007/03/12/x",
    "/abs/2301/12345",
    "/releases/v2091/03/notes",
    "/archives/1526/12/page/2",
]


@pytest.mark.parametrize("target", REAL)
def test_real_pages_pass(target):
    check(target, None)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/" + "x" * 2_000, "length"),
        ("/a/b/c" * 7, "segments"),
        ("/" + "/".join(str(n) for n in range(21)), "segments"),
        ("/?" + "&".join(f"p{n}={n}" for n in range(41)), "parameters"),
        ("/a/a/a/a", "repetition"),
        ("/img/css/img/x/img/js/img/logo.png", "repetition"),
        ("/a/b/a/b/a/b", "repetition"),
        ("/x/a/b/a/b/a/b/y", "repetition"),
        ("/de/forum/list/de/forum/list/de/forum/list", "repetition"),
        ("/x/1/x/1/x/1/", "repetition"),
        ("//////x", "repetition"),
        ("/?a=1&a=1&a=1&a=1", "repetition"),
        ("/2091/03/", "calendar"),
        ("/2091/03", "calendar"),
        ("/2091/12/", "calendar"),
        ("/2091/03/12/title", "calendar"),
        ("/blog/2091/03/12", "calendar"),
        ("/events/2091-03-12/", "calendar"),
        ("/events/2029/01/", "calendar"),
        ("/calendar/month/1526/12/", "calendar"),
        ("/events/1526/12/page/2", "calendar"),
        ("/cal?month=3&year=2091", "calendar"),
        ("/cal.php?y=2091&m=12", "calendar"),
        ("/cal?cal_year=1500&cal_month=01", "calendar"),
        ("/events?date=2091-03-12", "calendar"),
        ("/events?tribe-bar-date=2091-03", "calendar"),
        ("/events?day=20910312", "calendar"),
        ("/events?date=2091-03-12T00:00", "calendar"),
    ],
)
def test_traps(target, expected):
    check(target, expected)


@pytest.mark.parametrize(
    ("target", "limits", "expected"),
    [
        ("/abc", TrapLimits(max_url_length=23), None),
        ("/abcd", TrapLimits(max_url_length=23), "length"),
        ("/a/b/c", TrapLimits(max_segments=3), None),
        ("/a/b/c/d", TrapLimits(max_segments=3), "segments"),
        ("/a/x/a", TrapLimits(max_repeated_segments=2), None),
        ("/a/b/a/b", TrapLimits(max_repeated_segments=2), "repetition"),
        ("/?a&b", TrapLimits(max_query_parameters=2), None),
        ("/?a&b&c", TrapLimits(max_query_parameters=2), "parameters"),
        ("/2091/03/", TrapLimits(max_calendar_run=12 * 100), None),
        ("/2027/01/", TrapLimits(max_calendar_run=1), "calendar"),
        ("/events/1851/09/", TrapLimits(max_calendar_past_years=100), "calendar"),
        ("/events/1851/09/18/title", TrapLimits(max_calendar_past_years=100), None),
    ],
)
def test_limits(target, limits, expected):
    check(target, expected, limits)


def test_an_endless_calendar_is_a_trap_after_its_first_two_years():
    # A "next month" link from now on: 24 months are admitted, the rest is not.
    months = [(2026 + n // 12, n % 12 + 1) for n in range(10, 200)]
    verdicts = [detect_trap(f"https://a.org/calendar/{y}/{m:02}/", LIMITS, NOW) for y, m in months]
    assert verdicts[:24] == [None] * 24
    assert set(verdicts[27:]) == {"calendar"}
