"""What `why` reads of the file does not grow with it."""

from contextlib import closing

import pytest

from crawld.config.model import Config
from crawld.config.site import SiteConfig
from crawld.daemon.api.why_answer import answer
from crawld.daemon.api.why_facts import VISITS_SHOWN, Question, read_facts
from crawld.daemon.frontier.site import activate
from crawld.store import visit as visit_rows
from crawld.store.engine import migrate
from crawld.store.engine.connection import open_connection
from crawld.store.frontier import frontier, left_pages, site
from crawld.store.frontier import page as page_rows
from crawld.store.frontier.frontier import Discovery
from tests.unit.steps import sql_steps
from tests.unit.store.rows import NOW, changed

SITE = SiteConfig(name="s", seeds=("http://a.test/",), exclude=("prefix:/no/",))
URL = "http://a.test/x"
VISITED = "http://a.test/visited"
# Pages of one host, half of them never visited, with visits; as many titles, hints and seeds.
GROW = (
    """
    WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {count})
    INSERT INTO page (site_id, host_id, origin_id, url_hash, state, depth, seed, importance,
                      discovered_at, last_visit_at, requisite, url)
    SELECT 1, 1, 1, n, iif(n % 2, 'visited', 'discovered'), 0, n % 2, 1.0, 0,
           iif(n % 2, 1.0, NULL), 0, 'http://a.test/' || n FROM number
    """,
    "INSERT INTO visit (page_id, visited_at, outcome) SELECT page_id, 1.0, 'unchanged' FROM page",
    "INSERT INTO tombstone SELECT CAST(page_id AS BLOB), 1.0, NULL FROM page",
    "INSERT INTO page_share SELECT 2, page_id FROM page WHERE page_id % 2",
    "INSERT INTO wiki_member SELECT 1, 1, page_id, 'title', '', 1.0, 1.0 FROM page",
)

# As many visits of one page as there are pages.
OFTEN = """
INSERT INTO visit (page_id, visited_at, outcome) SELECT 2, page_id, 'unchanged' FROM page
"""


@pytest.fixture
def opened(tmp_path):
    """Return a function: a connection to a file with so many pages, and the question."""
    made = []

    def open_file(count):
        path = tmp_path / f"{count}.db"
        migrate.migrate(path, lambda _: None)
        connection = open_connection(path)
        made.append(connection)
        with connection:
            for name in ("s", "t"):
                site.upsert(connection, name, SITE.model_dump_json(), source="config", at=NOW)
            found = [Discovery.of(each, site_id=1, at=NOW, depth=9) for each in (URL, VISITED)]
            frontier.discover(connection, found)
            connection.execute("INSERT INTO wiki (origin_id, looked_at) VALUES (1, 1.0)")
            for sql in GROW:
                connection.execute(sql.format(count=count))
            connection.execute(OFTEN)
            connection.execute(
                "UPDATE page SET state = 'visited', last_visit_at = 1 WHERE page_id = 2"
            )
        return connection

    yield open_file
    for connection in made:
        with closing(connection):
            pass


def question_of(url):
    config = Config()
    active = activate(config, SITE, ["a.test"], ["http://a.test"], site_id=1, paused=False, now=NOW)
    return Question(url, url, {1: active}, config, None, NOW)


@pytest.mark.parametrize("url", [URL, VISITED, "http://a.test/never", "http://other.test/"])
def test_the_cost_does_not_depend_on_the_number_of_pages(opened, url):
    few, many = (
        sql_steps(opened(count), read_facts, question_of(url)) for count in (2_000, 32_000)
    )
    assert many <= 1.1 * few + 200, (few, many)
    assert many < 20_000


def test_only_the_last_visits_are_shown(opened):
    found = answer(read_facts(opened(2_000), question_of(VISITED)))
    assert found.page is not None
    assert len(found.page.visits) == VISITS_SHOWN


def test_the_seeds_of_a_site_are_not_counted_to_find_their_hosts(opened):
    few, many = (sql_steps(opened(count), site.seed_hosts, 1) for count in (1_000, 16_000))
    assert many <= few + 50, (few, many)


def test_the_place_in_the_queue_stops_at_a_thousand(opened):
    found = answer(read_facts(opened(2_500), question_of(URL)))
    assert found.page is not None
    assert found.page.ahead == 1_000
    assert any("more than 1,000 pages are before it" in each.text for each in found.causes)


@pytest.mark.parametrize(
    ("deleted_pages", "note"),
    [
        ("mark", "the last one, shown with the note that the page left its part of the wiki"),
        ("withhold", "withheld from readers, since it left its part of the wiki (deleted_pages"),
    ],
)
def test_the_copy_of_a_page_that_left_its_part_is_not_called_the_newest(
    opened, deleted_pages, note
):
    connection = opened(1)
    found = page_rows.by_url(connection, URL)
    assert found is not None
    page_id = found.page_id
    with connection:
        visit_rows.record(connection, changed(page_id, b"one"))
        left_pages.put(connection, [page_id], NOW + 1)
        config = SITE.model_copy(update={"deleted_pages": deleted_pages})
        site.upsert(connection, "s", config.model_dump_json(), source="config", at=NOW)
    found = answer(read_facts(connection, question_of(URL)))
    assert found.page is not None
    assert found.page.copy_text.startswith(note)
