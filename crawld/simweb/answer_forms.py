"""Hosts that answer the same URL in several forms: by language, device, type, time, or count.

Each host follows a `Rule`, which says what a request gets; it can be exchanged while the host runs,
as when a site is rebuilt. No text ever changes: whatever a crawler calls a change is a variant of
the same page. Every request is remembered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from typing import Final

from crawld.simweb.message import HTML, SimRequest, SimResponse, build_response

JSON: Final = "application/json"

_WANTED: Final = (
    "Das ist die Seite {} über Flüsse, Häfen und Brücken, die es in dieser Gegend gibt.",
    "Auf kleinen Geräten steht auf der Seite {} über Flüsse und Häfen weniger als sonst.",
    "Nur Text steht auf der Seite {} über Flüsse, Häfen und die Brücken zwischen ihnen.",
)
_ENGLISH: Final = "This is the page {} about rivers, harbours and bridges found in this area."
_RANGE: Final = re.compile(r"bytes=0-([0-9]{1,12})")


class EntityTags(StrEnum):
    """The ETags of a host: none, one for each form, or one for all forms of a page."""

    NONE = "none"
    FORM = "form"
    PAGE = "page"


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """What a request gets.

    Attributes:
        text: with a place for the path of the page.
        vary: value of the Vary header; None: the host does not send it.
        label: Content-Type that is sent; None: the true one.
    """

    text: str
    content_type: str = HTML
    vary: str | None = None
    status: int = 200
    label: str | None = None

    @property
    def german(self) -> bool:
        """Whether it is in German."""
        return self.text in _WANTED


Rule = Callable[[SimRequest], FormAnswer]

GERMAN: Final = FormAnswer(_WANTED[0])
MOBILE: Final = FormAnswer(_WANTED[1])
PLAIN: Final = FormAnswer(_WANTED[2])
ENGLISH: Final = FormAnswer(_ENGLISH)
DATA: Final = FormAnswer("", JSON)


def by_language(request: SimRequest) -> FormAnswer:
    """Answer in German if it is asked for first."""
    german = request.headers.get("accept-language", "").startswith("de")
    return _varying(GERMAN if german else ENGLISH, "Accept-Language")


def by_device(request: SimRequest) -> FormAnswer:
    """Answer small devices in German; without a Vary header, as many servers do."""
    return MOBILE if request.headers.get("user-agent", "").endswith("Mobile") else ENGLISH


def by_type(request: SimRequest) -> FormAnswer:
    """Answer with a German page if HTML alone is asked for, else with data."""
    return _varying(PLAIN if request.headers.get("accept") == "text/html" else DATA, "Accept")


def anyhow(request: SimRequest) -> FormAnswer:
    """Answer every request in German."""
    return GERMAN


def never(request: SimRequest) -> FormAnswer:
    """Answer every request in English, and claim that all of it matters."""
    return _varying(ENGLISH, "*")


def by_hour(request: SimRequest) -> FormAnswer:
    """Answer in German during every other hour, whatever is asked for."""
    return GERMAN if request.at // 3_600 % 2 else ENGLISH


def by_count(request: SimRequest) -> FormAnswer:
    """Answer in turn in German and English, whatever is asked for."""
    return GERMAN if request.serial % 2 else ENGLISH


def with_wall(after: int) -> Rule:
    """Return a rule that answers by language, and refuses each request after so many."""
    answered = 0

    def answer(request: SimRequest) -> FormAnswer:
        nonlocal answered
        answered += 1
        return by_language(request) if answered <= after else FormAnswer("{}", status=403)

    return answer


RULES: Final[Mapping[str, Rule]] = {
    "language": by_language,
    "device": by_device,
    "type": by_type,
    "anyhow": anyhow,
}
"""Rules under which one of the usual ways to ask brings German text."""


def _varying(answer: FormAnswer, vary: str) -> FormAnswer:
    return replace(answer, vary=vary)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a page, as it came.

    Attributes:
        german: whether its answer is in German.
    """

    host: str
    path: str
    headers: Mapping[str, str]
    at: float
    german: bool


class FormSite:
    """Hosts of `/` and `/p0`, `/p1`, …: the first names the others.

    Attributes:
        rules: of each host; may be exchanged.
        asked: requests for pages, in their order.
        padding: characters of a comment at the end of each HTML page.
    """

    def __init__(
        self,
        rules: Mapping[str, Rule],
        pages: int,
        *,
        tags: EntityTags = EntityTags.NONE,
        padding: int = 0,
    ) -> None:
        self.rules = dict(rules)
        self.asked: list[Asked] = []
        self.padding = padding
        self._pages = pages
        self._tags = tags

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host names it answers to."""
        return tuple(self.rules)

    def handle(self, request: SimRequest) -> SimResponse:
        """Return the response to a request."""
        path = request.path
        number = path.removeprefix("/p")
        if path != "/" and not (number.isdecimal() and int(number) < self._pages):
            return build_response(request, 404, b"no such page")
        answer = self.rules[request.host](request)
        headers = dict(request.headers)
        self.asked.append(Asked(request.host, path, headers, request.at, answer.german))
        body = self._body(answer, path)
        extra = "" if answer.vary is None else f"Vary: {answer.vary}\r\n"
        tag = self._tag(path, body)
        if tag and answer.status == 200:
            extra += f"ETag: {tag}\r\n"
            if request.headers.get("if-none-match") == tag:
                return build_response(request, 304, extra=extra)
        kind = answer.label or answer.content_type
        found = _RANGE.fullmatch(request.headers.get("range", ""))
        if found is not None and answer.status == 200:
            part = body[: int(found[1]) + 1]
            extra += f"Content-Range: bytes 0-{len(part) - 1}/{len(body)}\r\n"
            return build_response(request, 206, part, content_type=kind, extra=extra)
        return build_response(request, answer.status, body, content_type=kind, extra=extra)

    def _body(self, answer: FormAnswer, path: str) -> bytes:
        if answer.content_type == JSON:
            return json.dumps({"page": path}).encode()
        names = range(self._pages) if path == "/" else ()
        links = "".join(f'<a href="/p{number}">{number}</a>' for number in names)
        text = answer.text.format(path)
        padding = f"<!--{'x' * self.padding}-->" if self.padding else ""
        page = f"<html><title>t</title><body><p>{text}</p>{links}{padding}</body></html>"
        return page.encode()

    def _tag(self, path: str, body: bytes) -> str:
        match self._tags:
            case EntityTags.NONE:
                return ""
            case EntityTags.PAGE:
                return f'"{path}"'
            case EntityTags.FORM:
                return f'"{blake2b(body, digest_size=8).hexdigest()}"'
