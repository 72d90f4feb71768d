"""The filter of changes in a request: of the page of changes, and of feeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlencode

from crawld.core.event import EventKind
from crawld.core.url import canonicalize
from crawld.errors import InvalidUrlError
from crawld.store.mirror.events import ALL_KINDS, EventFilter
from crawld.web.reply import number

_MAX_CHARACTERS: Final = 1_000


class ChangeFilterError(ValueError):
    """A filter that means nothing; its text tells a reader why."""


class ChangeFilter(NamedTuple):
    """A filter, and where the list begins.

    Attributes:
        before: only events with ids below this one; None: the newest.
        parameters: the same as query parameters, in a fixed form and order.
    """

    wanted: EventFilter
    before: int | None
    parameters: tuple[tuple[str, str], ...]

    def query(self, before: int | None = None) -> str:
        """Return the query of a list with this filter, with its `?`; empty for all changes."""
        pairs = self.parameters if before is None else (*self.parameters, ("before", str(before)))
        return f"?{urlencode(pairs, errors='replace')}" if pairs else ""


def read_filter(parameters: Mapping[str, str]) -> ChangeFilter:
    """Return the filter that query parameters name.

    `site` is a name, `url` an address, `q` a search, `kind` some kinds with commas between them,
    `size` the smallest change in per cent, `before` an event id.

    Raises:
        ChangeFilterError: one of them means nothing.
    """
    given = {
        name: value
        for name in ("site", "url", "q", "kind", "size")
        if (value := parameters.get(name, "").strip()[:_MAX_CHARACTERS])
    }
    size = _size(given.get("size", "0"))
    kinds = _kinds(given["kind"]) if "kind" in given else ALL_KINDS
    url = _url(parameters["url"].strip()) if "url" in given else None
    shown = dict(given)
    if url is not None:
        shown["url"] = url
    if kinds == ALL_KINDS:
        shown.pop("kind", None)
    else:
        shown["kind"] = ",".join(kind for kind in EventKind if kind in kinds)
    if not size:
        shown.pop("size", None)
    else:
        shown["size"] = f"{size:g}"
    wanted = EventFilter(given.get("site"), url, kinds, size / 100, given.get("q", ""))
    before = number(parameters.get("before")) or None
    return ChangeFilter(wanted, before, tuple(shown.items()))


def _size(text: str) -> float:
    try:
        size = float(text.removesuffix("%"))
    except ValueError:
        size = math.nan
    if not 0.0 <= size <= 100.0:
        raise ChangeFilterError("The size of a change is a number from 0 to 100, in per cent.")
    return size


def _kinds(text: str) -> frozenset[EventKind]:
    try:
        return frozenset(EventKind(each.strip()) for each in text.split(","))
    except ValueError as error:
        names = ", ".join(EventKind)
        raise ChangeFilterError(f"The kinds of changes are: {names}.") from error


def _url(text: str) -> str:
    try:
        return canonicalize(text if "://" in text else f"https://{text}")
    except InvalidUrlError as error:
        raise ChangeFilterError("This is not a valid page address.") from error
