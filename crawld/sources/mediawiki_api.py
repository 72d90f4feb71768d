"""Builds requests to a MediaWiki API and interprets its responses.

Every response is a value. `ApiResponse` holds the result; `ApiTrouble` gives the reason for its
absence and the pause before the next request: the server's Retry-After, but at least a pause that
doubles with each failure in a row.

Rule 1: `maxlag` is sent with every request. A wiki whose databases lag answers with an error inside
HTTP 200; the request is repeated later.
Rule 2: the `continue` object of a response is sent back as received, never interpreted.
Rule 3: the JSON takes precedence over the HTTP status, because errors come with every status; the
status matters only if the response is not JSON.
Rule 4: responses of format version 1 (before MediaWiki 1.25) are supported too.

Source: MediaWiki, API:Etiquette, API:Errors and warnings, API:Continue, Manual:Maxlag parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlencode

from crawld.core.politeness import MAX_BACKOFF_DELAY_S, parse_retry_after
from crawld.core.units import DAY_S
from crawld.sources.json_text import read_json
from crawld.sources.mediawiki_rows import timestamp_of

Parameters = Mapping[str, str | int]

MAX_RESPONSE_BYTES = 8 * 1024 * 1024
"""500 revisions take 0.15 MB; MediaWiki itself cuts a response at 12 MB by default."""

MAX_QUERY_LENGTH = 6_000
"""Characters of a query; servers usually limit the whole request line to 8,000."""

MAX_PAUSE_S = DAY_S
"""Longest pause without a Retry-After: a closed API is tried once a day."""

TOLD_PAUSE_S = 10.0
"""Longest pause beyond the Retry-After of an overloaded server."""

LAG_PAUSE_S = 60.0
"""The same while the databases of a wiki lag, which may last for hours: a refusal costs the wiki
nothing, and edits wait until one is accepted."""

MAX_DETAIL = 200

MAX_WARNINGS = 20
"""Warnings of a response that are kept."""


class TroubleKind(StrEnum):
    """Why a request had no result."""

    LAGGED = "lagged"
    READ_ONLY = "read_only"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"
    CLOSED = "closed"
    FORBIDDEN = "forbidden"
    MOVED = "moved"
    NOT_JSON = "not_json"
    TOO_MANY = "too_many"
    BAD_CURSOR = "bad_cursor"
    BROKEN = "broken"
    HELD = "held"


REFUSALS: Final = frozenset({TroubleKind.BROKEN, TroubleKind.TOO_MANY, TroubleKind.BAD_CURSOR})
"""Troubles of a request, not of the wiki."""


_FIRST_PAUSE_S: Mapping[TroubleKind, float] = {
    TroubleKind.LAGGED: 5.0,
    TroubleKind.READ_ONLY: 60.0,
    TroubleKind.RATE_LIMITED: 60.0,
    TroubleKind.UNAVAILABLE: 60.0,
    TroubleKind.UNREACHABLE: 60.0,
    TroubleKind.CLOSED: 3_600.0,
    TroubleKind.FORBIDDEN: DAY_S,
    TroubleKind.MOVED: 60.0,
    TroubleKind.NOT_JSON: 600.0,
    # The request may be the cause, not the wiki; the next request is a different one.
    TroubleKind.TOO_MANY: 1.0,
    TroubleKind.BAD_CURSOR: 1.0,
    TroubleKind.BROKEN: 2.0,
    TroubleKind.HELD: 0.0,
}

_ERRORS: Mapping[str, TroubleKind] = {
    "maxlag": TroubleKind.LAGGED,
    "readonly": TroubleKind.READ_ONLY,
    "ratelimited": TroubleKind.RATE_LIMITED,
    "actionthrottledtext": TroubleKind.RATE_LIMITED,
    "toomanyvalues": TroubleKind.TOO_MANY,
    "too-many-titles": TroubleKind.TOO_MANY,
    "badcontinue": TroubleKind.BAD_CURSOR,
    "badcontinuation": TroubleKind.BAD_CURSOR,
}

_ANSWER_KEYS = frozenset({"query", "error", "errors", "batchcomplete", "continue"})

_CLOSED_PREFIXES = (
    *("readapidenied", "permissiondenied", "permissionserror", "badaccess", "blocked"),
    *("autoblocked", "mustbeloggedin", "notloggedin", "apidisabled", "moduledisabled"),
    *("unknown_action", "assert", "readrequired", "invalidaction"),
)


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """The result of a query.

    Attributes:
        query: the `query` object.
        cursor: the `continue` object, None at the end.
        warnings: the texts of its warnings.
        served_at: the wiki's own time (`curtimestamp`), Unix seconds; None if not given.
    """

    query: Mapping[str, object]
    cursor: Parameters | None = None
    warnings: tuple[str, ...] = ()
    served_at: float | None = None


@dataclass(frozen=True, slots=True)
class ApiTrouble:
    """Why a query had no result.

    Attributes:
        trouble: the kind.
        detail: short text for a person; of a redirect, its target.
        retry_after_s: wait requested by the server, seconds.
        limit: most values per request, if there were too many.
    """

    trouble: TroubleKind
    detail: str
    retry_after_s: float | None = None
    limit: int | None = None

    @property
    def is_host_trouble(self) -> bool:
        """Whether the whole host needs a back-off, not only the API."""
        return self.trouble in (
            TroubleKind.RATE_LIMITED,
            TroubleKind.UNAVAILABLE,
            TroubleKind.UNREACHABLE,
        )

    def pause_s(self, count: int) -> float:
        """Return the pause before the next request, seconds, after `count` troubles in a row."""
        grown = _FIRST_PAUSE_S[self.trouble] * 2.0 ** min(max(count - 1, 0), 20)
        if self.retry_after_s is None:
            return min(grown, MAX_BACKOFF_DELAY_S if self.is_host_trouble else MAX_PAUSE_S)
        # A server that says when to return is not asked much later than that.
        most_s = TOLD_PAUSE_S if self.is_host_trouble else MAX_PAUSE_S
        most_s = LAG_PAUSE_S if self.trouble is TroubleKind.LAGGED else most_s
        return max(min(grown, most_s), self.retry_after_s)


def query_url(api_url: str, parameters: Parameters, *, maxlag_s: float) -> str:
    """Return the URL of a query; `maxlag_s` is how far the wiki's databases may lag."""
    # An empty `continue` makes versions before 1.26 use the current form of cursors.
    fixed = {"format": "json", "formatversion": 2, "maxlag": f"{maxlag_s:g}", "continue": ""}
    return f"{api_url}?{urlencode({**fixed, 'action': 'query', **parameters})}"


def batch(values: Sequence[str], limit: int) -> list[str]:
    """Return as many of the first values as fit into one request, at least one."""
    taken: list[str] = []
    length = 0
    for value in values[: max(limit, 1)]:
        length += len(urlencode({"": value})) + len("%7C")
        if taken and length > MAX_QUERY_LENGTH:
            break
        taken.append(value)
    return taken


def read_response(
    status: int,
    retry_after: str | None,
    body: bytes,
    *,
    now: float,
    sent: str | None = None,
    location: str | None = None,
) -> ApiResponse | ApiTrouble:
    """Read a response of the API, received at `now` (Unix seconds).

    `retry_after`, `sent` (Date) and `location` are its headers.
    """
    retry_after_s = parse_retry_after(retry_after, now, sent) if retry_after else None
    document = _parsed(body)
    if document is None or not document.keys() & _ANSWER_KEYS:
        return _by_status(status, retry_after_s, body, location)
    error = _error(document)
    if error is not None:
        return _by_error(error, retry_after_s)
    query, cursor = document.get("query"), _cursor(document)
    if cursor is not None and len(urlencode(cursor)) > MAX_QUERY_LENGTH:
        return ApiTrouble(TroubleKind.BROKEN, "the continue object is too long to be sent back")
    return ApiResponse(
        query if isinstance(query, dict) else {},
        cursor,
        tuple(_warnings(document)),
        timestamp_of(document, "curtimestamp"),
    )


def _parsed(body: bytes) -> dict[str, object] | None:
    if len(body) > MAX_RESPONSE_BYTES or body.lstrip()[:1] != b"{":
        return None
    try:
        document = read_json(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _by_status(
    status: int, retry_after_s: float | None, body: bytes, location: str | None
) -> ApiTrouble:
    if status == 429:
        return ApiTrouble(TroubleKind.RATE_LIMITED, "status 429", retry_after_s)
    if status >= 500 or (status == 403 and retry_after_s):
        return ApiTrouble(TroubleKind.UNAVAILABLE, f"status {status}", retry_after_s)
    if 300 <= status < 400:
        return ApiTrouble(TroubleKind.MOVED, (location or "")[:2_000], retry_after_s)
    if status in (413, 414, 431):
        return ApiTrouble(TroubleKind.TOO_MANY, f"status {status}: the request is too long")
    if status >= 400:
        return ApiTrouble(TroubleKind.CLOSED, f"status {status}", retry_after_s)
    start = body[:60].decode("utf-8", "replace")
    return ApiTrouble(TroubleKind.NOT_JSON, f"not JSON: {' '.join(start.split())!r}", retry_after_s)


def _error(document: Mapping[str, object]) -> Mapping[str, object] | None:
    error = document.get("error")
    if error is None and isinstance(errors := document.get("errors"), list) and errors:
        error = errors[0]
    if error is None:
        return None
    return error if isinstance(error, dict) else {"code": error}


def _by_error(error: Mapping[str, object], retry_after_s: float | None) -> ApiTrouble:
    code = _scalar_text(error.get("code"))
    detail = f"{code}: {_scalar_text(error.get('info') or error.get('text'))}"[:MAX_DETAIL]
    trouble = _ERRORS.get(code)
    if trouble is None:
        closed = code.startswith(_CLOSED_PREFIXES)
        trouble = TroubleKind.CLOSED if closed else TroubleKind.BROKEN
    data = error.get("data")
    limits = [row.get("limit") for row in (error, data) if isinstance(row, dict)]
    limit = next((limit for limit in limits if isinstance(limit, int) and limit > 0), None)
    return ApiTrouble(trouble, detail, retry_after_s, limit)


def _scalar_text(value: object) -> str:
    """Return a value as text if it is a text or number, else "": other values may nest deeply."""
    return str(value) if isinstance(value, str | int | float) else ""


def _cursor(document: Mapping[str, object]) -> Parameters | None:
    cursor = document.get("continue")
    if not isinstance(cursor, dict) or not cursor:
        return None
    return {str(key): value for key, value in cursor.items() if isinstance(value, str | int)}


def _warnings(document: Mapping[str, object]) -> list[str]:
    warnings = document.get("warnings")
    if isinstance(warnings, dict):
        rows = [(str(key), row) for key, row in warnings.items()]
    else:
        rows = [("", row) for row in warnings] if isinstance(warnings, list) else []
    found = []
    for module, row in rows[:MAX_WARNINGS]:
        text = row.get("warnings", row.get("*", row.get("text"))) if isinstance(row, dict) else row
        found.append(f"{module}: {_scalar_text(text)}"[:MAX_DETAIL])
    return found
