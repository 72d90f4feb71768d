"""Printable text, JSON, and how commands end."""

import json

import pytest
import typer

from crawld.cli import output
from crawld.errors import ConfigError, UnreachableError


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
