"""contrib/plugins/page_views.py: importance by Wikipedia's counts."""

import gzip
from pathlib import Path

import pytest

from crawld.plugin_host.trial import found_at, try_file

FILE = Path(__file__).parents[2] / "contrib" / "plugins" / "page_views.py"
COUNTS = """en Physics 400 0
en.m Physics 9000 0
en Beech 100 0
en Oak 25 0
en Rare_page 1 0
en Caf%C3%A9 100 0
de Physik 900 0
en Torn
"""


@pytest.fixture
def plugin(tmp_path):
    counts = tmp_path / "pageviews.gz"
    counts.write_bytes(gzip.compress(COUNTS.encode()))
    made = found_at(FILE).load()
    made.configure({"file": str(counts)})
    return made


def test_pages_that_are_read_more_weigh_more(plugin):
    weights = {
        title: plugin.weigh_page(f"https://en.wikipedia.org/wiki/{title}")
        for title in ("Physics", "Beech", "Oak", "Rare_page", "Nobody_reads_it")
    }
    assert weights == {
        "Physics": 2.0,
        "Beech": 1.0,
        "Oak": 0.5,
        "Rare_page": 0.1,
        "Nobody_reads_it": 0.1,
    }


def test_other_sites_have_no_opinion(plugin):
    assert plugin.weigh_page("https://de.wikipedia.org/wiki/Physik") is None
    assert plugin.weigh_page("https://example.org/wiki/Physics") is None


@pytest.mark.parametrize("options", [{}, {"file": "/no/such/file"}, {"file": "x", "fil": 1}])
def test_bad_options_are_refused(options):
    [problem] = try_file(FILE, options).problems
    assert "refuses its options" in problem


def test_a_file_of_another_project_is_refused(tmp_path):
    counts = tmp_path / "counts"
    counts.write_text(COUNTS)
    assert try_file(FILE, {"file": str(counts), "project": "nl"}).problems
    assert try_file(FILE, {"file": str(counts), "project": "de"}).problems == []
