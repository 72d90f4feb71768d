"""Printable text, JSON and exit codes."""

import json

import pytest
import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from crawld.cli import output
from crawld.cli.console import console
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
def test_control_characters_are_replaced(text, shown):
    assert output.clean(text) == shown


def test_sparkline():
    assert output.sparkline([0.0, 0.5, 1.0, 2.0, -1.0]) == "▁▅██▁"
    assert output.sparkline([]) == ""


def test_json_text_round_trips():
    assert json.loads(output.json_text({"title": "漢\x1b"})) == {"title": "漢\x1b"}


def exit_code(function, *arguments):
    with pytest.raises(typer.Exit) as exited:
        output.with_exit_code(function)(*arguments)
    return exited.value.exit_code


def raising(error):
    def command():
        raise error

    return command


def test_result_is_the_exit_code():
    assert exit_code(lambda: None) == 0
    assert exit_code(lambda: 3) == 3
    assert exit_code(lambda code: code, 4) == 4


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (ConfigError("no good", hint="do better"), 2, "error: no good\n  do better\n"),
        (UnreachableError("nobody"), 4, "error: nobody\n"),
        (ExceptionGroup("", [ExceptionGroup("", [ConfigError("deep")])]), 2, "error: deep\n"),
        (KeyboardInterrupt(), 130, ""),
        (BaseExceptionGroup("", [KeyboardInterrupt()]), 130, ""),
    ],
)
def test_operator_errors_are_printed(error, code, printed, capsys):
    assert exit_code(raising(error)) == code
    assert capsys.readouterr().err == printed


@pytest.mark.parametrize(
    "bug", [ValueError("bug"), ExceptionGroup("", [ConfigError("no"), ValueError("bug")])]
)
def test_bugs_propagate(bug):
    with pytest.raises(type(bug)):
        output.with_exit_code(raising(bug))()


HOSTILE = "\x1b[2J\x9b31m\x1b]0;title\x07\u202e\x7f\U000e0041"


def test_tables_show_no_control_character(capsys):
    table = Table("a", title=HOSTILE)
    table.add_row(HOSTILE)
    table.add_row(Text(f"x{HOSTILE}", style="bold"))
    shown = console()
    shown.print(table)
    shown.print(HOSTILE, Group(HOSTILE, "next\nline"))
    printed = capsys.readouterr().out
    assert printed.replace("\n", "").isprintable()
    assert "next\nline" in printed


def test_errors_show_no_control_character(capsys):
    def command():
        raise ConfigError(f"one {HOSTILE}\ntwo", hint=HOSTILE)

    with pytest.raises(typer.Exit):
        output.with_exit_code(command)()
    printed = capsys.readouterr().err
    assert "\ntwo" in printed
    assert printed.replace("\n", "").isprintable()


@pytest.mark.parametrize("indent", [None, 2])
def test_json_escapes_every_control_character(indent):
    value = {HOSTILE: [HOSTILE, "漢\n"]}
    text = output.printable_json(json.dumps(value, ensure_ascii=False, indent=indent))
    assert text.replace("\n", "").isprintable()
    assert "漢" in text
    assert json.loads(text) == value
