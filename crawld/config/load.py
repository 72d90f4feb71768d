"""Loads a config file; returns a checked config or one error that lists every mistake and its line.

A config with a mistake is rejected as a whole, so that a reload never applies half of it. Seed
files are read completely, which may take seconds, so the daemon calls `load` in a thread.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from crawld.config.checks import SiteSeeds, check_config
from crawld.config.issue import Issue
from crawld.config.key import unit_of
from crawld.config.model import Config, HostGroupConfig
from crawld.config.notify import NotifyConfig
from crawld.config.plugin import PluginConfig
from crawld.config.positions import KeyPath, key_lines, nearest_line
from crawld.config.site import INNER_TABLES, SiteConfig
from crawld.core.url import hide_credentials
from crawld.errors import ConfigError

MAX_CONFIG_BYTES = 1 << 20
"""Long lists belong in a `seeds_file`; a larger config is a mistake."""

MAX_SHOWN = 20

# The position at the end of a tomllib message.
_AT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")

TABLES: dict[str, type[BaseModel]] = {
    name: field.annotation
    for name, field in Config.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
}
"""The tables of the file that occur once."""

BLOCKS: dict[str, type[BaseModel]] = {
    "site": SiteConfig,
    "notify": NotifyConfig,
    "plugin": PluginConfig,
}
"""The tables that repeat: `[[site]]`."""

# Messages for pydantic's error types; `{ge}` and the like come from the error itself.
_MEANING = {
    "missing": "is missing",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be text in quotes",
    "path_type": "must be a path in quotes",
    "tuple_type": "must be a list: [...]",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "finite_number": "must be a finite number",
    "greater_than_equal": "must be at least {ge:g}",
    "greater_than": "must be above {gt:g}",
    "less_than_equal": "must be at most {le:g}",
    "literal_error": "must be {expected}",
    "too_long": "has more than {max_length} entries",
}

_PLURAL = {"site": "sites", "notify": "notifications", "plugin": "plug-ins"}


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A valid config.

    Attributes:
        config: paths in it are absolute, or relative to the working directory if the path of the
            config was.
        warnings: for the operator, each with its line.
        seeds: summary of the seeds of each site, by its name.
    """

    config: Config
    warnings: tuple[str, ...]
    seeds: Mapping[str, SiteSeeds]


def load(path: Path) -> LoadedConfig:
    """Read and check a config file.

    Raises:
        ConfigError: it cannot be read, is not TOML, or has mistakes; the message lists all of them.
    """
    text = _read(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax(path, text, str(error)) from None
    except (RecursionError, ValueError):
        raise ConfigError(
            f"{path} is not valid TOML: a number is too long, or brackets are nested too deep",
            hint="fix that place",
        ) from None
    lines = key_lines(text)
    document.setdefault("daemon", {})  # its default paths are relative to this file
    try:
        config = Config.model_validate(document, context={"directory": path.parent})
    except ValidationError as error:
        mistakes = list(_mistakes(error, document))
        mistakes += _issues_besides(mistakes, document, path.parent)
        raise _refusal(path, lines, mistakes) from None
    issues, seeds = check_config(config)
    if fatal := [issue for issue in issues if issue.fatal]:
        raise _refusal(path, lines, fatal)
    warnings = tuple(f"{path}{_place(lines, each)}: {each.message}" for each in issues)
    return LoadedConfig(config, warnings, seeds)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"cannot read the config {path}: {reason}",
            hint="create one with `crawld init`",
        ) from None
    if len(data) > MAX_CONFIG_BYTES:
        raise ConfigError(
            f"{path} is larger than {MAX_CONFIG_BYTES} bytes",
            hint="put long lists of seeds into a seeds_file",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8 text", hint="save it as UTF-8") from None
    if not text.strip():
        raise ConfigError(f"{path} is empty", hint="create one with `crawld init`")
    return text


def _syntax(path: Path, text: str, reason: str) -> ConfigError:
    match = _AT.search(reason)
    # An unexpected end is an error on the last line that is not empty.
    last = len(text.rstrip().splitlines())
    place = f"line {match[1]}, column {match[2]}" if match and match[1] else f"line {last}"
    return ConfigError(
        f"{path}, {place}: not valid TOML: {_AT.sub('', reason)}",
        hint="fix that place; text values need quotes",
    )


def _refusal(path: Path, lines: Mapping[KeyPath, int], issues: Sequence[Issue]) -> ConfigError:
    shown = sorted(issues, key=lambda each: nearest_line(lines, each.path) or 0)
    texts = [f"{path}{_place(lines, each)}: {each.message}" for each in shown[:MAX_SHOWN]]
    if len(shown) > MAX_SHOWN:
        texts.append(f"... and {len(shown) - MAX_SHOWN} more")
    return ConfigError("\n".join(texts))


def _place(lines: Mapping[KeyPath, int], issue: Issue) -> str:
    line = nearest_line(lines, issue.path)
    return "" if line is None else f", line {line}"


def _mistakes(error: ValidationError, document: Mapping[str, object]) -> Iterator[Issue]:
    for details in error.errors(include_url=False):
        path = tuple(part for part in details["loc"] if part != "[key]")
        yield Issue(path, _message(path, details, document))


def _message(path: KeyPath, details: ErrorDetails, document: Mapping[str, object]) -> str:
    name = _key_name(path, document)
    if details["type"] == "extra_forbidden":
        return f"unknown key {name}{_suggestion(path)}"
    if len(path) == 1 and name in BLOCKS and details["type"] == "tuple_type":
        return f"{_PLURAL[name]} are written as [[{name}]] blocks, with two brackets"
    if details["type"] == "value_error":
        meaning = str(details["ctx"]["error"])
    else:
        meaning = _MEANING.get(details["type"], details["msg"]).format(**details.get("ctx", {}))
    is_table = isinstance(details["input"], dict | list)
    given = "" if is_table else f" = {_shown(details['input'])}"
    return f"{name}{given} {meaning}{_unit(path)}"


def _issues_besides(
    mistakes: Sequence[Issue], document: Mapping[str, Any], directory: Path
) -> list[Issue]:
    """Return what is wrong with seeds and other values apart from mistakes of single keys.

    The keys with a mistake are left out for that; issues that may follow from it are not told.
    """
    rest = copy.deepcopy(dict(document))
    for mistake in mistakes:
        _remove(rest, mistake.path)
    for index, site in enumerate(_blocks(rest, "site")):
        site.setdefault("name", f"number-{index + 1}")  # the mistake may be the name
    try:
        config = Config.model_validate(rest, context={"directory": directory})
    except ValidationError:
        return []
    wrong = [mistake.path for mistake in mistakes]
    return [
        issue
        for issue in check_config(config)[0]
        if issue.fatal and not any(_is_related(issue.path, path) for path in wrong)
    ]


_SOME_SEED = "http://localhost/"
"""Stands in for a seed that is not even text."""


def _is_related(one: KeyPath, other: KeyPath) -> bool:
    """Whether a key is, holds or is held by another."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def _blocks(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    blocks = document.get(name)
    return [each for each in blocks if isinstance(each, dict)] if isinstance(blocks, list) else []


def _remove(document: dict[str, Any], path: KeyPath) -> None:
    """Remove a key; a seed becomes another one, so that no index changes, other lists go whole."""
    holder: Any = document
    for part, following in zip(path, (*path[1:], None), strict=True):
        inner = holder.get(part) if isinstance(holder, dict) else None
        if isinstance(holder, list):
            if not isinstance(part, int) or part >= len(holder):
                return
            holder = holder[part]
        elif part == "seeds" and isinstance(inner, list) and isinstance(following, int):
            inner[following] = _SOME_SEED
            return
        elif following is not None and (isinstance(inner, dict) or part in BLOCKS):
            holder = inner
        else:
            if isinstance(holder, dict):
                holder.pop(part, None)
            return


def _shown(value: object) -> str:
    text = hide_credentials(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= 60 else text[:59] + "…"


def _key_name(path: KeyPath, document: Mapping[str, object]) -> str:
    """Return a key as shown to operators: `[fetch] total_s`, `site "docs" seeds[2]`."""
    names, rest = [f"[{path[0]}]"], path[1:]
    if path[0] in BLOCKS and rest and isinstance(rest[0], int):
        names, rest = [_block_name(document, str(path[0]), rest[0])], rest[1:]
    elif not rest:
        return f"{path[0]}" if path[0] not in TABLES else f"[{path[0]}]"
    for part in rest:
        if isinstance(part, int):
            names[-1] += f"[{part}]"
        else:
            names.append(part)
    return " ".join(names)


def _block_name(document: Mapping[str, object], table: str, index: int) -> str:
    blocks = document.get(table)
    block = blocks[index] if isinstance(blocks, list) else None
    name = block.get("name") if isinstance(block, dict) else None
    return f'{table} "{name}"' if isinstance(name, str) else f"[[{table}]] number {index + 1}"


def _table_of(path: KeyPath) -> type[BaseModel] | None:
    """Return the model of the table that holds a key."""
    if len(path) == 1:
        return Config
    if path[0] in BLOCKS:
        inner = [INNER_TABLES[str(part)] for part in path[:-1] if part in INNER_TABLES]
        return inner[0] if inner else BLOCKS[str(path[0])]
    if len(path) > 2 and path[:2] == ("politeness", "groups"):
        return HostGroupConfig
    return TABLES.get(str(path[0]))


def _suggestion(path: KeyPath) -> str:
    wanted, table = str(path[-1]), _table_of(path)
    keys = _keys(table) if table is not None else []
    if near := difflib.get_close_matches(wanted, keys, n=1):
        return f"; did you mean {near[0]}?"
    elsewhere: dict[str, type[BaseModel]] = {**TABLES, **BLOCKS}
    for name, model in elsewhere.items():
        if wanted in model.model_fields:
            return f"; did you mean {wanted} of {f'[[{name}]]' if name in BLOCKS else f'[{name}]'}?"
    return f"; known keys: {', '.join(sorted(keys))}" if 0 < len(keys) <= 10 else ""


def _keys(table: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in table.model_fields.items()]


def _unit(path: KeyPath) -> str:
    name, table = str(path[-1]), _table_of(path)
    field = table.model_fields.get(name) if table is not None else None
    unit = unit_of(name, field) if field is not None else ""
    return f" ({unit})" if unit else ""
