"""Lines of a config file that explain a decision."""

import pytest

from crawld.config.places import read_places

TEXT = """\
[daemon]
db = "m.db"

[[site]]
name = "one"
seeds = ["https://a.org/"]

[[site]]
name = "two"
seeds = ["https://b.org/"]
exclude = [
    "prefix:/x/",
    "glob:*.pdf",
]
max_depth = 3
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(TEXT)
    return path


def test_lines_of_sites_keys_and_rules(config):
    places = read_places(config)
    assert places.site("one").line == 4
    assert places.site("two").text == f"{config}:8"
    assert places.site("three") is None
    assert places.site_key("two", "exclude", 1, value="glob:*.pdf").line == 13
    assert places.site_key("two", "max_depth").line == 15


def test_a_line_is_named_only_with_the_value_in_force(config):
    places = read_places(config)
    assert places.site_key("two", "exclude", 1, value="glob:*.doc").line == 8
    assert places.site_key("two", "exclude", 7, value="glob:*.pdf").line == 8
    assert places.site_key("one", "exclude", 0).line == 4
    assert places.site_key("three", "exclude", 0) is None


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"[", b"a = 1\na = 2", b"x = [" * 5_000])
def test_what_is_no_config_any_more_has_no_lines(tmp_path, content):
    path = tmp_path / "c.toml"
    path.write_bytes(content)
    assert read_places(path) is None
    path.unlink()
    assert read_places(path) is None


def test_a_file_of_another_shape_names_no_site(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('site = 3\n[x]\nname = "one"\n')
    assert read_places(path).site("one") is None
