"""Valid configs, and every kind of mistake, reported with its line."""

import pytest
from pydantic import ValidationError

from crawld.config.load import MAX_CONFIG_BYTES, load
from crawld.config.model import Config
from tests.unit.config.conftest import refusal

GOOD = """\
[daemon]
contact = "you@example.org"
db = "data/mirror.db"

[politeness]
host_delay_s = 5
quiet_hours = ["23:00-06:00"]
timezone = "Europe/Paris"

[[site]]
name = "docs"
seeds = ["https://Docs.Example.org:443/a/../"]
include = ["prefix:/"]
exclude = ["glob:*.zip", "regex:[?&]sort="]
max_depth = 3
weights = [{ pattern = "prefix:/api/", importance = 2 }]
"""

SITE = '[daemon]\ncontact = "a@b.org"\n[[site]]\nname = "s"\nseeds = ["https://a.example/"]\n'


def test_a_longest_time_between_visits_below_the_shortest_is_a_warning(write):
    (warning,) = load(write(SITE + "max_revisit_s = 1000.0\n")).warnings
    assert "max_revisit_s is below [schedule] min_revisit_s (3600)" in warning
    assert load(write(SITE + "max_revisit_s = 3600.0\n")).warnings == ()


def test_good_config(write, tmp_path):
    loaded = load(write(GOOD))
    assert loaded.warnings == ()
    assert loaded.config.daemon.db == tmp_path / "data/mirror.db"
    assert loaded.config.politeness.host_delay_s == 5.0
    assert loaded.config.sites[0].weights[0].importance == 2.0
    assert loaded.seeds["docs"].hosts == {"docs.example.org"}


@pytest.mark.parametrize(
    ("value", "size_bytes"),
    [
        ("100000000", 100_000_000),
        ('"512 MiB"', 512 * 2**20),
        ('"512M"', 512 * 2**20),
        ('"2 GB"', 2_000_000_000),
        ('"1GiB"', 2**30),
        ('"67108864"', 2**26),
        ('"67108864 B"', 2**26),
    ],
)
def test_sizes_of_memory_have_units(write, value, size_bytes):
    daemon = load(write(f"[daemon]\nmax_memory = {value}")).config.daemon
    assert daemon.max_memory == size_bytes


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        ("[politeness]\nhost_delay = 3", 2, ["unknown key", "did you mean host_delay_s?"]),
        ("[politeness]\ngroups = [{ hosts = ['a'], max_conn = 2 }]", 2, ["mean max_connections?"]),
        ("[politeness]\nhost_delay_s = -3", 2, ["host_delay_s = -3", "at least 0", "seconds"]),
        ("[politeness]\nhost_delay_s = true", 2, ["must be a number"]),
        ("[politeness]\nhost_delay_s = nan", 2, ["finite"]),
        ("[politeness]\nhost_delay_s = 1e400", 2, ["finite"]),
        ("[politeness]\nmax_in_flight = 3", 2, ["did you mean max_in_flight of [daemon]?"]),
        *(
            (f"[schedule]\nmax_requests_per_s = {rate}", 2, ["max_requests_per_s", "request a day"])
            for rate in ("0", "-1", "0.00001")
        ),
        ("[schedule]\nmax_requests_per_s = nan", 2, ["finite"]),
        ("[schedule]\nmax_requests_per_s = 1e9", 2, ["at most 10000"]),
        ("[schedule]\nmax_requests_per_s = '1'", 2, ["must be a number"]),
        ("[schedule]\nmax_bytes_per_s = 0", 2, ["at least 10000"]),
        ("[schedule]\nmax_bytes_per_s = -5", 2, ["at least 10000"]),
        (
            "[politeness]\ngroups = [{ hosts = ['a'], max_requests_per_s = 0 }]",
            2,
            ["max_requests_per_s", "request a day"],
        ),
        ("\n[fetch]\ntotal_s = '60'", 3, ["[fetch] total_s", "must be a number"]),
        ("[fetch]\nhttp2 = 1", 2, ["true or false"]),
        ("[fetch]\nmax_body_bytes = 1.5", 2, ["whole number"]),
        ("[polteness]\nx = 1", 1, ["did you mean politeness?"]),
        ("daemon = 3", 1, ["[daemon]", "must be a table"]),
        ("[daemon]\nlog_level = 'loud'", 2, ["'debug', 'info', 'warning' or 'error'"]),
        ("[daemon]\ncontact = 'me'", 2, ["e-mail"]),
        ('[daemon]\ncontact = "a@b.org\\r\\nX: y"', 2, ["e-mail"]),
        ("[daemon]\ndb = ''", 2, ["must be a path"]),
        ("[daemon]\nmax_memory = 1000", 2, ["max_memory = 1000", "at least 64 MiB"]),
        ("[daemon]\nmax_memory = '63 MiB'", 2, ["at least 64 MiB"]),
        ("[daemon]\nmax_memory = 'much'", 2, ['such as "512 MiB"']),
        ("[daemon]\nmax_memory = 1e9", 2, ['such as "512 MiB"']),
        ("[daemon]\nmax_memory = true", 2, ['such as "512 MiB"']),
        ('[daemon]\ndb = "a\\u0000"', 2, ["must be a path"]),
        ("[daemon]\ndb = '~nobody-of-that-name/x'", 2, ["home directory"]),
        ("[daemon]\nsocket = '" + "s" * 120 + "'", 2, ["107 bytes"]),
        ("[daemon]\nsocket_group = 'no such group'", 2, ["no group"]),
        ("[politeness]\nquiet_hours = [\n '01:00-02:00',\n '25:00-26:00']", 4, ["HH:MM"]),
        ("[politeness]\nquiet_hours = ['00:00-24:00']", 2, ["whole day"]),
        ("[politeness]\ntimezone = 'Mars'", 2, ["time zone"]),
        ("[dns]\nhosts = { a = ['x'] }", 2, ["IP address"]),
        ("[dns]\nhosts = { 'a/b' = ['127.0.0.1'] }", 2, ["host name"]),
        ("[site]\nname = 'a'", 1, ["two brackets"]),
        ("[[site]]\nseeds = ['http://127.0.0.1/']", 1, ["name is missing"]),
        ("[[site]]\nname = 's'", 1, ["needs seeds, seeds_file or titles_file"]),
        ("[[site]]\nname = 's'\ntitles_file = 't'", 1, ["needs title_url"]),
        ("[[site]]\nname = 'a b'\nseeds = ['http://x/']", 2, ["letters, digits"]),
        (SITE + "include = ['/docs']", 6, ["prefix:"]),
        (SITE + "include = ['regex:(']", 6, ["does not compile"]),
        (SITE + "include = ['prefix:docs']", 6, ["begins neither a URL nor a path"]),
        (SITE + "exclude = ['prefix:/']", 5, ["outside the site's scope (exclude)"]),
        (SITE + "weights = [\n{ pattern = 'glob:*' }]", 7, ["importance is missing"]),
        (SITE + "weights = [{ patern = 'glob:*', importance = 1 }]", 6, ["mean pattern?"]),
        (SITE + "content_types = ['html']", 6, ["media type"]),
        (SITE + "title_url = 'https://a.example/'", 6, ["{title}"]),
        (SITE + "seeds_file = 'missing.txt'", 6, ["cannot read", "No such file"]),
        (SITE + "seeds_file = '/'", 6, ["not a regular file"]),
        (SITE + "headers_file = 'missing'", 6, ["headers_file: cannot read"]),
        (SITE + "headers_over_http = true", 3, ["need headers_file"]),
        (SITE + "headers_origins = ['https://x/y']", 6, ["scheme, host and port only"]),
        (SITE + "[[site]]\nname = 's'\nseeds = ['http://x/']", 7, ["two sites are named 's'"]),
        (SITE.replace("https://a.example/", "nourl"), 5, ["'nourl' is not a URL"]),
    ],
)
def test_each_mistake_is_named_with_its_line(write, text, line, parts):
    message = refusal(write(text))
    assert f"crawld.toml, line {line}: " in message
    for part in parts:
        assert part in message


def test_all_mistakes_are_reported_in_order_of_lines(write):
    message = refusal(write("[fetch]\ntotal_s = -1\nhttp2 = 0\n[store]\nbatch = 1\n"))
    places = [line.split(": ")[0][-6:] for line in message.splitlines()]
    assert places == ["line 2", "line 3", "line 5"]


def test_seeds_are_checked_together_with_the_values_of_keys(write):
    message = refusal(
        write(
            """\
[daemon]
log_level = "loud"
[[site]]
name = "a"
seeds = ["no url", "http://a.test/"]
max_depth = -1
[[site]]
seeds = ["ftp://b.test/"]
include = 5
[[site]]
name = "c"
seeds = [7, "none either"]
"""
        )
    )
    told = [line.split(": ", 1) for line in message.splitlines()]
    assert [place.partition(", ")[2] for place, _ in told] == [
        *("line 2", "line 5", "line 6", "line 7", "line 8", "line 9", "line 12", "line 12")
    ]
    assert "'no url' is not a URL" in message
    assert "'ftp://b.test/' has the scheme" in message
    assert "'none either' is not a URL" in message
    assert "localhost" not in message


@pytest.mark.parametrize(
    "text",
    [
        '[[site]]\nname = "a"\nseeds = 5\n',  # no seed is left, because of the mistake
        '[[site]]\nname = "a"\nseeds = ["http://localhost/"]\nseeds_file = 3\n',
        "[[site]]\n",
        "site = 5\n",
        "[site]\nname = 3\n",
        "[politeness]\ngroups = [{ hosts = 3 }]\n",
        "[politeness]\ngroups = [3]\n",
    ],
)
def test_no_issue_that_follows_from_a_mistake_is_told(write, text):
    assert len(refusal(write(text)).splitlines()) == 1


def test_a_rate_may_be_one_request_a_day(write):
    text = "[schedule]\nmax_requests_per_s = 0.0000116\n[[site]]\nname = 's'\n"
    config = load(write(f"{text}seeds = ['http://localhost/']\nmax_requests_per_s = 1\n")).config
    assert config.schedule.max_requests_per_s == pytest.approx(1.0 / 86_400.0, rel=0.01)
    assert config.sites[0].max_requests_per_s == 1.0


@pytest.mark.parametrize("text", ["", "[daemon]\n", '[daemon]\ndb = "crawld.db"\n'])
def test_the_database_is_beside_the_config_written_out_or_not(write, tmp_path, monkeypatch, text):
    monkeypatch.chdir("/")
    path = write(f'{text}[[site]]\nname = "a"\nseeds = ["http://localhost/"]\n')
    assert load(path).config.daemon.db == tmp_path / "crawld.db"


def test_the_number_of_reported_mistakes_is_limited(write):
    message = refusal(write("[fetch]\n" + "".join(f"key{n} = 1\n" for n in range(1000))))
    assert message.endswith("... and 980 more")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"[daemon]\ndb = 'half", "line 2: not valid TOML"),
        (b"\n[daemon\n\n", "line 2, column 8: not valid TOML"),
        (b"\n[daemon\n\n\n[", "line 2, column 8: not valid TOML"),
        (b"a = 1\nb = = 2", "line 2, column 5: not valid"),
        (b"[daemon]\ndb = '\xff'", "line 2: not UTF-8"),
        (b"a = " + b"[" * 5_000, "brackets are nested"),
        (b"a = " + b"9" * 5_000, "number is too long"),
        (b"#" * (MAX_CONFIG_BYTES + 1), "larger than"),
        (b"\x00\x01\x02", "not valid TOML"),
    ],
)
def test_files_that_are_not_a_config(write, content, part):
    assert part in refusal(write(content))


def test_unreadable_paths(tmp_path):
    assert "Is a directory" in refusal(tmp_path)
    assert "No such file" in refusal(tmp_path / "none.toml")
    assert "null byte" in refusal(tmp_path / "a\0b")


def test_byte_order_mark_and_windows_line_ends(write):
    text = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    assert load(write(text)).config.sites[0].name == "docs"


@pytest.mark.parametrize(
    ("seed", "needed"),
    [
        ("https://en.wikipedia.org/", True),
        ("http://8.8.8.8/", True),
        ("http://wiki.corp/", True),
        ("http://127.0.0.1/", False),
        ("http://10.1.2.3/", False),
        ("http://[::1]/", False),
        ("http://localhost:8080/", False),
        ("http://wiki.test/", False),
    ],
)
def test_public_hosts_require_a_contact(write, seed, needed):
    text = f"[dns]\nhosts = {{ 'wiki.test' = ['127.0.0.9'] }}\n[[site]]\nname='s'\nseeds=['{seed}']"
    if needed:
        assert 'set [daemon] contact = "you@example.org"' in refusal(write(text))
    else:
        load(write(text))


def test_a_public_host_on_the_last_line_of_a_file_requires_a_contact(write):
    write("http://127.0.0.1/\n" * 20_000 + "https://public.example/\n", "seeds.txt")
    message = refusal(write("[[site]]\nname = 's'\nseeds_file = 'seeds.txt'"))
    assert "public.example is a public host" in message


def test_one_host_has_one_politeness(write):
    second = '[[site]]\nname = "t"\nseeds = ["https://a.example/t"]\n'
    assert load(write(SITE + second)).warnings == ()
    message = refusal(write(SITE + second + "host_delay_s = 30.0\n"))
    assert 'sites "s" and "t" both have a.example' in message
    assert "line 6" in message


def test_warnings_name_their_line(write):
    write("https://a.example/1\nftp://a.example/\n\n# comment\nhttps://a.example/x/2\n", "u.txt")
    text = SITE.replace('/"]', '/", "https://a.example/#top"]')
    path = write(text + "seeds_file = 'u.txt'\nexclude = ['prefix:/x/']\nhost_delay_s = 0.5\n")
    warnings = "\n".join(load(path).warnings)
    assert "line 5" in warnings
    assert "listed twice" in warnings
    assert "u.txt, line 2: 'ftp://a.example/' has the scheme" in warnings
    assert "1 of 3 lines are outside" in warnings
    assert "0.5 s between requests" in warnings


def test_a_seed_of_two_sites_is_a_warning_that_names_both(write):
    second = '[[site]]\nname = "t"\nseeds = ["https://a.example/#x", "https://a.example/t"]\n'
    [warning] = load(write(SITE + second)).warnings
    assert 'site "t": seed https://a.example/ belongs to site "s"' in warning


def test_a_site_whose_seeds_all_belong_to_other_sites_is_refused(write):
    second = '[[site]]\nname = "t"\nseeds = ["https://a.example/"]\n'
    assert 'site "t" would stay empty' in refusal(write(SITE + second))


def test_parts_of_a_wiki_may_have_the_same_seed(write):
    part = '[[site]]\nname = "t"\napi = true\nwiki_prefixes = ["Help:"]\n'
    seeds = 'seeds = ["https://a.example/"]\n'
    assert load(write(SITE + part + seeds)).warnings == ()


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ("wiki_titles = ['A b', 'C']", "wiki_titles = ['A_b']", "the title 'A b'"),
        ("wiki_titles = ['A b', 'C']", "titles_file = 'list.txt'", "the title 'A b'"),
        ("wiki_titles = ['Help:A']", "wiki_prefixes = ['Help:']", "the title 'Help:A'"),
        ("wiki_categories = ['X']", "wiki_categories = ['Y', 'X']", "the category 'X'"),
        ("wiki_prefixes = ['He']", "wiki_prefixes = ['Help:']", "the prefix 'Help:'"),
        ("wiki_titles = ['A']", "max_depth = 3", "titles of one wiki"),
        ("wiki_titles = ['A']", "wiki_prefixes = ['B']", None),
        ("wiki_categories = ['X']", "wiki_titles = ['A']", None),
    ],
)
@pytest.mark.parametrize("rules", ["importance", ""])
def test_titles_that_two_sites_name_with_other_rules_are_a_warning(
    write, first, second, what, rules
):
    write("Z\nA_b\n", "list.txt")
    text = f"{SITE}api = true\n{first}\n"
    text += f"[[site]]\nname = 't'\nseeds = ['https://a.example/t']\napi = true\n{second}\n"
    text += "keep_versions = 3\n" if rules else ""
    warnings = load(write(text)).warnings
    named = [each for each in warnings if 'site "t" and site "s" both name' in each]
    assert len(named) == (what is not None and (bool(rules) or "max_depth" in second))
    assert all(what in each for each in named)


def test_titles_of_a_file_that_is_missing_are_compared_with_no_other_site(write):
    text = f"{SITE}api = true\ntitles_file = 'none.txt'\nkeep_versions = 3\n"
    text += "[[site]]\nname = 't'\nseeds = ['https://a.example/t']\napi = true\n"
    assert "none.txt" in refusal(write(text + "wiki_titles = ['A']\n"))


def test_titles_of_no_wiki_are_warnings(write):
    titles = '"Bad|title", "Bad|title", "[x]", "C++", "É", "_", "a#b", "<b>", "{{x}}", "a\\u0001"'
    text = SITE + f"api = true\nwiki_titles = [{titles}]\n"
    warnings = load(write(text)).warnings
    assert len(warnings) == 6
    assert "'Bad|title' cannot be the title of a wiki page" in warnings[0]
    assert "2 more such titles" in warnings[-1]


def test_a_site_without_a_usable_seed_is_refused(write):
    write("nothing\nuseful\n", "u.txt")
    text = '[[site]]\nname = "s"\nseeds_file = "u.txt"\n'
    assert "no usable seed" in refusal(write(text))


def test_a_config_without_sites_only_warns(write):
    assert "nothing to mirror" in load(write("[daemon]\n")).warnings[0]


PASSWORD_PLACES = (
    "[[site]]\nname = 's'\nseeds = ['https://{}a.example/']",
    SITE + "feeds = ['https://{}a.example/feed']",
    SITE + "sitemap_urls = ['https://{}a.example/s.xml']",
    SITE + "listings = ['https://{}a.example/l']",
    SITE + "event_stream = 'https://{}a.example/e'",
    SITE + "titles_file = 't'\ntitle_url = 'https://{}a.example/{{title}}'",
    SITE + "proxy = 'http://{}a.example:3128'",
    SITE + "headers_file = 'h'\nheaders_origins = ['https://{}a.example']",
    SITE + "hosts = ['{}a.example']",
    SITE + "include = ['prefix:https://{}a.example/']",
    SITE + "weights = [{{ pattern = 'glob:https://{}a.example/*', importance = 1.0 }}]",
    "[daemon]\ncontact = 'https://{}a.example/'",
    "[web]\nlisten = '{}127.0.0.1:80'",
)


@pytest.mark.parametrize("text", PASSWORD_PLACES)
def test_a_password_in_a_url_is_refused_and_not_shown(write, text):
    message = refusal(write(text.format("reader:s3cret@")))
    assert "s3cret" not in message


def test_a_seeds_file_with_passwords_is_read_without_them(write, tmp_path):
    (tmp_path / "urls").write_text("https://u:s3cret@a.example/\nhttps://b.example/\n")
    loaded = load(write(SITE + "seeds_file = 'urls'"))
    assert "s3cret" not in repr(loaded)
    assert any("line 1" in each and "headers_file" in each for each in loaded.warnings)
    assert loaded.seeds["s"].hosts == {"a.example", "b.example"}


@pytest.mark.parametrize(
    ("seeds", "more", "outcome"),
    [
        (["https://a.example/"], "", "sent"),
        (["http://a.example/"], "", "refused"),
        (["http://a.example/"], "headers_over_http = true", "sent"),
        (["http://a.example/", "https://a.example/"], "", "warned"),
        (["http://127.0.0.1:8000/", "http://[::1]/", "http://localhost/"], "", "sent"),
        (["http://10.0.0.1/"], "allow_private = true", "refused"),
        (["http://127.0.0.1/"], "proxy = 'http://p.example:3128'", "refused"),
        (["http://a.example/"], "headers_origins = ['https://a.example']", "warned"),
    ],
)
def test_headers_are_sent_over_http_only_if_the_operator_says_so(
    write, tmp_path, seeds, more, outcome
):
    (tmp_path / "h").write_text("X-Key: s3cret\n")
    (tmp_path / "h").chmod(0o600)
    text = f"[daemon]\ncontact = 'a@b.org'\n[[site]]\nname = 's'\nseeds = {seeds}\n{more}\n"
    path = write(text + "headers_file = 'h'\n")
    if outcome == "refused":
        assert "headers_over_http = true" in refusal(path)
        return
    unsent = [each for each in load(path).warnings if "headers_file is not sent" in each]
    assert bool(unsent) == (outcome == "warned")


def test_an_error_of_the_models_does_not_show_the_value():
    with pytest.raises(ValidationError) as caught:
        Config.model_validate({"daemon": {"contact": ["hunter2"]}})
    assert "hunter2" not in str(caught.value)
