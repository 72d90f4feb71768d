"""Documents name only paths, commands, options, keys and versions that exist."""

import re
import shlex
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import typer

from crawld.config.load import load

ROOT = Path(__file__).parents[2]
GUIDES = tuple(sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
DOCUMENTS = ("README.md", "ARCHITECTURE.md", *GUIDES)
PROGRAMS = {"crawld": "crawld.cli.main", "crawlctl": "crawld.cli.crawlctl"}
# ARCHITECTURE.md names files relative to these directories (`core/url.py`).
PATH_ROOTS = (ROOT, ROOT / "crawld")
SITE = '[daemon]\ncontact = "a@example.org"\n[[site]]\nname = "a"\nseeds = ["https://a.test/"]\n'
SUFFIXES = ("py", "sql", "toml", "md", "txt", "sh", "service", "json", "html")

# Prefixes of a command in a shell line.
_BEFORE = re.compile(r"^(?:\$ |sudo (?:-u \S+ )?|\.venv/bin/)+")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def spans(text):
    """Return the text in backticks, outside of code blocks."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def paths(text):
    """Yield the spans that are paths in the repository."""
    for span in spans(text):
        plain = re.fullmatch(r"[\w.*-]+(?:/[\w.*-]+)*/?", span)
        is_file = span.rpartition(".")[2] in SUFFIXES
        if plain and (is_file or span.endswith("/")) and "NNNN" not in span:
            yield span


def lines_of_code(text):
    """Yield the lines of code blocks, with continued lines joined."""
    for block in re.findall(r"```[a-z]*\n(.*?)```", text, flags=re.DOTALL):
        yield from block.replace("\\\n", " ").splitlines()


def commands(text):
    """Yield (program, words) of every command line of crawld and crawlctl in a document."""
    for line in [*lines_of_code(text), *spans(text)]:
        line = _BEFORE.sub("", line.strip())
        if line.partition(" ")[0] in PROGRAMS and " " in line:
            program, *words = shlex.split(line, comments=True)
            yield program, words


@cache
def command_of(program):
    """Return the click command of a program: to make it takes 20 ms."""
    module = import_module({**PROGRAMS, "lab": "crawld.cli.lab"}[program])
    app = next(value for value in vars(module).values() if isinstance(value, typer.Typer))
    return typer.main.get_command(app)


def resolve(program, words):
    """Return the click command that the first words name, and the other words."""
    if (program, *words[:1]) == ("crawld", "lab") and len(words) > 1 and words[1][:1].isalpha():
        program, words = "lab", words[1:]
    command = command_of(program)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def test_paths_are_recognised():
    text = "`core/url.py`, `tests/`, `make run`, `a/b`, `/status`, `x.db`, ```\n`no.py`\n```"
    assert list(paths(text)) == ["core/url.py", "tests/"]


def test_commands_are_recognised():
    text = "`crawld mirror URL`, `crawld`, ```\n$ crawlctl status \\\n  --json  # now\nls\n```"
    assert list(commands(text)) == [
        ("crawlctl", ["status", "--json"]),
        ("crawld", ["mirror", "URL"]),
    ]


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md"])
def test_every_path_exists(name):
    named = set(paths(read(name)))
    assert named, f"{name} names no path"
    missing = {path for path in named if not any(list(root.glob(path)) for root in PATH_ROOTS)}
    assert missing == set()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_relative_link_exists(name):
    folder = (ROOT / name).parent
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", read(name))
    assert [target for target in targets if not (folder / target).exists()] == []


@pytest.mark.parametrize("name", GUIDES)
def test_every_config_is_valid(name, tmp_path):
    """A block of keys without a table belongs to a site."""
    (tmp_path / "titles.txt").write_text("CERN\n")
    (tmp_path / "mail.password").write_text("correct horse\n")
    (tmp_path / "phone.url").write_text("ntfy://my-topic\n")
    for number, block in enumerate(re.findall(r"```toml\n(.*?)```", read(name), flags=re.DOTALL)):
        whole = block if "[[site]]" in block else f"{SITE}{block}" if block[0] != "[" else block
        path = tmp_path / f"{number}.toml"
        path.write_text(whole)
        load(path)


def unknown(text):
    """Yield every command and option in a text that does not exist."""
    for program, words in commands(text):
        try:
            command, rest = resolve(program, words)
        except KeyError as error:
            yield f"{program} {error.args[0]}"
            continue
        options = {option for parameter in command.params for option in parameter.opts}
        named = [word.partition("=")[0].strip("[]") for word in rest if word.lstrip("[")[:1] == "-"]
        for option in named:
            if option not in options | {"--help"}:
                yield f"{program} {command.name} {option}"


def test_unknown_commands_and_options_are_found():
    text = "`crawld fly`, `crawlctl status --loud`, `crawld mirror URL --once [--fast=1]`"
    assert list(unknown(text)) == ["crawld fly", "crawlctl status --loud", "crawld mirror --fast"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_and_option_exists(name):
    assert list(unknown(read(name))) == []


def test_readme_shows_commands():
    assert len(list(commands(read("README.md")))) > 1


def test_every_make_target_exists():
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), flags=re.MULTILINE))
    code = [*lines_of_code(read("README.md")), *spans(read("README.md"))]
    named = {match[1] for line in code if (match := re.match(r"(?:\$ )?make ([a-z-]+)", line))}
    assert {"run", "test"} <= named <= targets


def test_changelog_has_the_version():
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    headings = re.findall(r"^## \[?v?(\d+\.\d+\.\d+)", read("CHANGELOG.md"), flags=re.MULTILINE)
    assert version in headings
    assert headings == sorted(headings, key=lambda v: [int(n) for n in v.split(".")], reverse=True)


def test_architecture_is_short_and_names_no_line():
    text = read("ARCHITECTURE.md")
    assert text.count("\n") <= 300
    assert re.findall(r"\.py:\d+", text) == []


def test_architecture_names_every_room():
    folders = {path.parent for path in (ROOT / "crawld").rglob("__init__.py")} - {ROOT / "crawld"}
    named = {span.rstrip("/") for span in spans(read("ARCHITECTURE.md"))}
    assert {path.relative_to(ROOT).as_posix() for path in folders} <= named
