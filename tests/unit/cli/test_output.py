"""Figures for people, and how commands end."""

import json
import math

import pytest
import typer

from crawld.cli import output
from crawld.errors import ConfigError, UnreachableError


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (10_000, "9.8 KiB"),
        (102_400, "100 KiB"),
        (1_048_575, "1.0 MiB"),
        (5 * 2**30, "5.0 GiB"),
        (2**60, "1024.0 PiB"),
    ],
)
def test_size(size_bytes, text):
    assert output.size_text(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0.0, "0 ms"),
        (-1.0, "0 ms"),
        (0.25, "250 ms"),
        (0.9999, "1.0 s"),
        (1.0, "1.0 s"),
        (15.0, "15 s"),
        (59.96, "1 min 00 s"),
        (61.0, "1 min 01 s"),
        (3599.0, "59 min"),
        (3600.0, "1 h 00 min"),
        (86_399.0, "23 h 59 min"),
        (90_000.0, "1 d 1 h"),
        (86_400.0 * 400, "400 d"),
        (math.inf, "for ever"),
    ],
)
def test_duration(seconds, text):
    assert output.duration_text(seconds) == text


def test_ago():
    assert output.ago_text(None, 100.0) == "never"
    assert output.ago_text(90.0, 100.0) == "10 s ago"
    assert output.ago_text(101.0, 100.0) == "0 ms ago"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, ""),
        ("plain", "plain"),
        ("Ærøskøbing 漢字", "Ærøskøbing 漢字"),
        ("a\x1b[2Jb", "a\N{REPLACEMENT CHARACTER}[2Jb"),
        ("line\nnext\r", "line\N{REPLACEMENT CHARACTER}next\N{REPLACEMENT CHARACTER}"),
        ("right\u202eleft", "right\N{REPLACEMENT CHARACTER}left"),
        ("[bold]no markup[/]", "[bold]no markup[/]"),
    ],
)
def test_foreign_text_cannot_command_a_terminal(text, shown):
    assert output.clean(text) == shown


def test_sparkline():
    assert output.sparkline([0.0, 0.5, 1.0, 2.0, -1.0]) == "▁▅██▁"
    assert output.sparkline([]) == ""


def test_json_keeps_every_character():
    assert json.loads(output.json_text({"title": "漢\x1b"})) == {"title": "漢\x1b"}


def end(function, *arguments):
    with pytest.raises(typer.Exit) as ended:
        output.with_exit_code(function)(*arguments)
    return ended.value.exit_code


def raising(error):
    def command():
        raise error

    return command


def test_result_is_the_exit_code():
    assert end(lambda: None) == 0
    assert end(lambda: 3) == 3
    assert end(lambda code: code, 4) == 4


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("no good", hint="do better"), 2, "error: no good\n  do better\n"),
        (UnreachableError("nobody"), 4, "error: nobody\n"),
        (ExceptionGroup("", [ExceptionGroup("", [ConfigError("deep")])]), 2, "error: deep\n"),
        (KeyboardInterrupt(), 130, ""),
        (BaseExceptionGroup("", [KeyboardInterrupt()]), 130, ""),
    ],
)
def test_errors_of_the_operator_are_messages(error, code, said, capsys):
    assert end(raising(error)) == code
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "bug", [ValueError("bug"), ExceptionGroup("", [ConfigError("no"), ValueError("bug")])]
)
def test_bugs_show_where_they_are(bug):
    with pytest.raises(type(bug)):
        output.with_exit_code(raising(bug))()
