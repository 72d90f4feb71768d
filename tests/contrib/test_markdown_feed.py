"""contrib/plugins/markdown_feed.py: pages as Markdown, in files and for another program."""

import json
import sys
from pathlib import Path

import pytest

from crawld.plugin_host import examples
from crawld.plugin_host.trial import found_at, try_file

FILE = Path(__file__).parents[2] / "contrib" / "plugins" / "markdown_feed.py"


@pytest.fixture
def plugin():
    return found_at(FILE).load()


def test_it_works():
    result = try_file(FILE, {"command": ["cat"]})
    assert result.problems == []
    assert result.parts == ["markdown_feed:files", "markdown_feed:lines"]
    assert try_file(FILE, {"command": "cat"}).problems


def test_headings_links_lists_and_code(plugin):
    html = (
        "<nav>Menu</nav><h1>Beech</h1><p>A <b>large</b> tree; see <a href='oak.html'>the oak</a>."
        "</p><ul><li>wood</li><li>nuts</li></ul><pre>a  b\n c</pre><script>x()</script>"
    )
    page = examples.exported_page(html, url="https://example.org/trees/beech.html")
    assert plugin.markdown(page) == (
        "# Beech\n\nA large tree; see [the oak](https://example.org/trees/oak.html) .\n\n"
        "- wood\n\n- nuts\n\n```\na  b\n c\n```\n"
    )


def test_files_are_written_and_replaced(plugin, tmp_path):
    pages = [examples.exported_page(url=f"https://example.org/{n}") for n in range(3)]
    assert plugin.write_files(iter(pages), tmp_path) == 3
    assert plugin.write_files(iter(pages), tmp_path) == 3
    files = sorted((tmp_path / "example.org").iterdir())
    assert len(files) == 3
    text = files[0].read_text()
    assert text.startswith('---\n"url": "https://example.org/0"\n"title": "Autumn"\n')
    assert "\n# Autumn\n" in text


@pytest.mark.parametrize(
    "url",
    ["https://h/../../etc/passwd", "https://h/" + "a/" * 900, "https://h/%00%2e%2e", "https://h/"],
)
def test_no_url_leaves_the_directory(plugin, tmp_path, url):
    path = tmp_path / plugin.file_name(url)
    assert path.resolve().is_relative_to(tmp_path)
    assert len(path.name) < 120


def test_lines_feed_a_program(plugin, tmp_path):
    counting = "import sys; print(sum(1 for line in sys.stdin if '# Autumn' in line))"
    plugin.configure({"command": [sys.executable, "-c", counting]})
    pages = [examples.exported_page(url=f"https://example.org/{n}") for n in range(5)]
    assert plugin.feed_lines(iter(pages), tmp_path / "out") == 5
    assert json.loads((tmp_path / "out").read_text()) == 5


def test_a_program_that_fails_fails_the_export(plugin, tmp_path):
    plugin.configure(
        {"command": [sys.executable, "-c", "import sys; sys.stdin.read(); sys.exit(3)"]}
    )
    with pytest.raises(RuntimeError, match="ended with 3"):
        plugin.feed_lines(iter([examples.exported_page()]), tmp_path / "out")
