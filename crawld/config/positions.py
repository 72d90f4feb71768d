"""Finds the line of each key in a TOML text, which `tomllib` does not report.

`tomllib` has already parsed the text, so the scanner assumes valid TOML and raises no errors. It
reads the tokens once and records the line of every table, key and array element by its path in the
parsed document: `("site", 0, "seeds", 2)`.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from typing import NamedTuple

KeyPath = tuple[str | int, ...]

# Order matters: three quotes before one. Whitespace and comments are skipped.
_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|\#[^\n]*)|(?P<newline>\n)"
    r'|(?P<string>"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
    r'|(?P<mark>[\[\]{},=])|(?P<dot>\.)|(?P<bare>[^\s#\[\]{},=."\']+)',
    re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


class _Scan:
    """One pass over the tokens; fills `lines`."""

    def __init__(self, text: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._tokens = _tokens(text)
        self._at = 0
        self._elements: dict[KeyPath, int] = {}  # index of the last element of arrays of tables

    def run(self) -> None:
        table: KeyPath = ()
        while (token := self._take()).kind != "end":
            if token.text == "[" and token.kind == "mark":
                table = self._header(token.line)
            elif token.kind != "newline":
                self._at -= 1
                self._pair(table)

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _key(self) -> list[tuple[str, int]]:
        """Read a dotted key; stop at the token that ends it."""
        parts = []
        while (token := self._peek()).kind in ("string", "bare", "dot"):
            self._at += 1
            if token.kind != "dot":
                parts.append((_unquote(token), token.line))
        return parts

    def _header(self, line: int) -> KeyPath:
        is_array = self._peek().text == "["
        self._at += is_array
        parts = [part for part, _ in self._key()]
        self._at += 1 + is_array
        path: KeyPath = ()
        for part in parts[:-1]:
            path = self._entered((*path, part), line)
        path = (*path, parts[-1])
        if is_array:
            self.lines.setdefault(path, line)
            self._elements[path] = self._elements.get(path, -1) + 1
            path = (*path, self._elements[path])
        self.lines.setdefault(path, line)
        return path

    def _entered(self, path: KeyPath, line: int) -> KeyPath:
        self.lines.setdefault(path, line)
        return (*path, self._elements[path]) if path in self._elements else path

    def _pair(self, table: KeyPath) -> None:
        path = table
        for part, line in self._key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self._at += 1  # the equals sign
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        token = self._take()
        if token.kind == "mark" and token.text in "[{":
            self._collection(path, "]" if token.text == "[" else "}")
            return
        while self._peek().kind in ("bare", "dot"):  # numbers and dates contain dots
            self._at += 1

    def _collection(self, path: KeyPath, closing: str) -> None:
        index = 0
        while (token := self._peek()).text != closing or token.kind != "mark":
            if token.kind == "newline" or token.text == ",":
                self._at += 1
            elif closing == "}":
                self._pair(path)
            else:
                self.lines.setdefault((*path, index), token.line)
                self._value((*path, index))
                index += 1
        self._at += 1


def _tokens(text: str) -> list[_Token]:
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    tokens = [
        _Token(match.lastgroup or "", match[0], bisect_right(starts, match.start()))
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "space"
    ]
    return [*tokens, _Token("end", "", len(starts))]


def _unquote(token: _Token) -> str:
    if token.kind != "string":
        return token.text
    return str(tomllib.loads(f"key = {token.text}")["key"])


def key_lines(text: str) -> dict[KeyPath, int]:
    """Return the line, from 1, of every table, key and array element of a valid TOML text."""
    scan = _Scan(text)
    scan.run()
    return scan.lines


def nearest_line(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """Return the line of a path, or of the innermost table around it; None for the whole file."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)
