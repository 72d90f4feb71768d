"""Rewrites of the path and query of a URL that may leave the page the same.

The target of a URL is its path and query. A rewrite changes the target alone, so that it never
leaves its origin. Each takes time linear in the target.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple


class RewriteForm(StrEnum):
    """What a rewrite does; `name` and `value` are those of the rewrite.

    The order is that in which rewrites are applied.
    """

    COLLAPSE = "collapse"
    """Repeated slashes become one."""
    LOWER = "lower"
    """The path in lower case."""
    TOKEN = "token"
    """The segment at index `name` is removed if it looks like a session id."""
    REPLACE = "replace"
    """The first segment that is `name` becomes `value`, or is removed if that is empty."""
    CUT = "cut"
    """Each segment ends where `name` begins in it."""
    REMOVE = "remove"
    """`name` is removed from the last segment."""
    LAST = "last"
    """The last segment is removed if it is `name`; the slash before it stays."""
    SLASH = "slash"
    """A slash is added to a path whose last segment has no dot."""
    UNSLASH = "unslash"
    """The slash at the end of a path is removed."""
    DROP = "drop"
    """The parameter `name` is removed."""
    VALUE = "value"
    """The parameter `name` is removed where its value is `value`."""
    SORT = "sort"
    """Parameters are sorted."""


PATH_FORMS: Final = frozenset(RewriteForm) - {RewriteForm.DROP, RewriteForm.VALUE, RewriteForm.SORT}

ORDER: Final = {form: at for at, form in enumerate(RewriteForm)}

LEAST_TOKEN: Final = 8
"""Characters of the shortest session id."""


class Rewrite(NamedTuple):
    """One rewrite; the meaning of `name` and `value` depends on the form."""

    form: RewriteForm
    name: str = ""
    value: str = ""

    @property
    def is_of_path(self) -> bool:
        """Whether it changes paths only."""
        return self.form in PATH_FORMS

    def words(self) -> str:
        """Return what it does, for people.

        >>> Rewrite(RewriteForm.DROP, "sid").words()
        'the parameter sid is irrelevant'
        """
        return _WORDS[self.form].format(name=self.name, value=self.value or "nothing")


_WORDS: Final = {
    RewriteForm.COLLAPSE: "repeated slashes are one",
    RewriteForm.LOWER: "the case of the path is irrelevant",
    RewriteForm.TOKEN: "segment {name} of the path is a session id",
    RewriteForm.REPLACE: 'the segment "{name}" stands for {value}',
    RewriteForm.CUT: 'the rest of a segment from "{name}" on is irrelevant',
    RewriteForm.REMOVE: '"{name}" in the last segment is irrelevant',
    RewriteForm.LAST: '"{name}" is the index page of its folder',
    RewriteForm.SLASH: "the slash at the end of the path may be missing",
    RewriteForm.UNSLASH: "the slash at the end of the path is irrelevant",
    RewriteForm.DROP: "the parameter {name} is irrelevant",
    RewriteForm.VALUE: "the parameter {name} is irrelevant if it is {value}",
    RewriteForm.SORT: "the order of the parameters is irrelevant",
}


def split_target(target: str) -> tuple[str, str]:
    """Return path and query of a target."""
    path, _, query = target.partition("?")
    return path, query


def join_target(path: str, query: str) -> str:
    """Return the target of a path and a query, which may be empty."""
    return f"{path}?{query}" if query else path


def rewrite_path(path: str, rewrite: Rewrite) -> str:
    """Return a path after one rewrite of it."""
    return _PATHS[rewrite.form](path, rewrite.name, rewrite.value)


def _collapse(path: str, _name: str, _value: str) -> str:
    if "//" not in path:
        return path
    whole = "/".join(segment for segment in path.split("/") if segment)
    return f"/{whole}/" if path.endswith("/") and whole else f"/{whole}"


def _lower(path: str, _name: str, _value: str) -> str:
    return path if "%" in path else path.lower()  # codes are upper case


def _token(path: str, name: str, _value: str) -> str:
    segments = path.split("/")
    at = int(name) + 1
    if at >= len(segments) - 1 or not looks_random(segments[at]):
        return path
    return "/".join(segments[:at] + segments[at + 1 :])


def _replace(path: str, name: str, value: str) -> str:
    if name not in path:
        return path
    segments = path.split("/")
    if name not in segments[1:]:
        return path
    at = segments.index(name, 1)
    segments[at : at + 1] = [value] if value else []
    return "/".join(segments) if len(segments) > 1 else "/"


def _cut(path: str, name: str, _value: str) -> str:
    if name not in path:
        return path
    # What has nothing before the mark is data, not a remark on a name.
    return "/".join(one.partition(name)[0] or one for one in path.split("/"))


def _remove(path: str, name: str, _value: str) -> str:
    before, _, last = path.rpartition("/")
    return f"{before}/{last.replace(name, '', 1) or last}"


def _last(path: str, name: str, _value: str) -> str:
    before, _, last = path.rpartition("/")
    return f"{before}/" if last == name else path


def _slash(path: str, _name: str, _value: str) -> str:
    return path if path.endswith("/") or "." in path.rpartition("/")[2] else path + "/"


def _unslash(path: str, _name: str, _value: str) -> str:
    return path.removesuffix("/") or "/"


_PATHS: Final = {
    RewriteForm.COLLAPSE: _collapse,
    RewriteForm.LOWER: _lower,
    RewriteForm.TOKEN: _token,
    RewriteForm.REPLACE: _replace,
    RewriteForm.CUT: _cut,
    RewriteForm.REMOVE: _remove,
    RewriteForm.LAST: _last,
    RewriteForm.SLASH: _slash,
    RewriteForm.UNSLASH: _unslash,
}


def rewrite_query(query: str, rewrite: Rewrite) -> str:
    """Return a query after one rewrite of it."""
    if not query:
        return query
    items = query.split("&")
    if rewrite.form is RewriteForm.SORT:
        return "&".join(sorted(item for item in items if item))
    if rewrite.form is RewriteForm.VALUE:
        return "&".join(item for item in items if item != f"{rewrite.name}={rewrite.value}")
    return "&".join(item for item in items if item.partition("=")[0] != rewrite.name)


def rewrite_target(target: str, rewrite: Rewrite) -> str:
    """Return a target after one rewrite."""
    path, query = split_target(target)
    if rewrite.is_of_path:
        return join_target(rewrite_path(path, rewrite), query)
    return join_target(path, rewrite_query(query, rewrite))


def looks_random(segment: str) -> bool:
    """Whether a segment looks like a session id: letters and digits mixed, with no words.

    >>> looks_random("8f3a09bc77"), looks_random("version2"), looks_random("(S(a81hd73k2))")
    (True, False, True)
    """
    text = segment.removeprefix("(S(").removesuffix("))")
    if len(text) < LEAST_TOKEN or not text.isascii() or not text.isalnum():
        return False
    digits = [character.isdigit() for character in text]
    turns = sum(one != other for one, other in pairwise(digits))
    return turns >= 2 and any(digits)
