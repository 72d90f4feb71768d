"""The log: styles, and levels that change at run time."""

import io
import json

import pytest
import structlog

from crawld.cli.logs import configure_logs


@pytest.fixture(autouse=True)
def _defaults():
    yield
    structlog.reset_defaults()


def written(style, level, write):
    stream = io.StringIO()
    configure_logs(style=style, level=level, stream=stream)
    write(structlog.get_logger("test"))
    return stream.getvalue()


@pytest.mark.parametrize("style", ["json", "auto"])
def test_json_for_programs(style):
    line = written(style, lambda: "info", lambda log: log.info("fetched", url="http://x/", n=3))
    parsed = json.loads(line)
    assert parsed.pop("timestamp").endswith("Z")
    assert parsed == {"event": "fetched", "level": "info", "url": "http://x/", "n": 3}


def test_key_value_for_people():
    line = written("console", lambda: "info", lambda log: log.warning("slow", host="h", s=1.5))
    assert "slow" in line
    assert "host=h s=1.5" in line
    assert "\x1b" not in line


def test_the_level_is_read_for_each_line():
    level = "warning"

    def write(log):
        nonlocal level
        log.info("dropped")
        log.warning("written")
        level = "debug"
        log.debug("written_too")

    lines = written("json", lambda: level, write).splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["written", "written_too"]


@pytest.mark.parametrize("style", ["json", "console"])
def test_a_bug_is_logged_with_its_traceback(style):
    def write(log):
        try:
            raise ValueError("odd")
        except ValueError:
            log.exception("not_recorded")

    shown = written(style, lambda: "error", write)
    assert "ValueError" in shown
    assert "odd" in shown
    assert "test_logs.py" in shown


HOSTILE = "\x1b[2J\x9b31m\x1b]0;title\x07\u202e\x7f"


@pytest.mark.parametrize("style", ["json", "console"])
def test_control_characters_of_servers_do_not_reach_the_terminal(style):
    def write(log):
        log.info("text", text=HOSTILE, listed=[HOSTILE], table={HOSTILE: HOSTILE}, lines="a\nb")
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            log.exception("failed")

    shown = written(style, lambda: "info", write)
    assert "ValueError" in shown
    assert shown.replace("\n", "").isprintable()
    if style == "json":
        first, second = map(json.loads, shown.splitlines())
        assert (first["text"], first["lines"]) == (HOSTILE, "a\nb")
        assert second["exception"][0]["exc_value"] == HOSTILE
