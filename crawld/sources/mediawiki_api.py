"""The etiquette of a MediaWiki API: how a request is written and what an answer means.

Every answer is a value. `ApiResponse` holds what was asked for; `ApiTrouble` says why there is none
and for how long the API is left alone: what the server asks for (Retry-After), at least a pause
that grows with each failure in a row.

Rule 1: `maxlag` goes with every request. A wiki whose databases lag answers with an error inside
HTTP 200; it is asked again later, not harder.
Rule 2: where an answer goes on is said by its `continue` object; it is handed back as it came and
never interpreted.
Rule 3: what HTTP says counts less than what the JSON says, since errors come with every status;
only an answer that is no JSON is judged by its status.
Rule 4: answers of format version 1 (before MediaWiki 1.25) are read as well.

Source: MediaWiki, API:Etiquette, API:Errors and warnings, API:Continue, Manual:Maxlag parameter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlencode

from crawld.core.politeness import parse_retry_after
from crawld.sources.mediawiki_rows import timestamp_of

Parameters = Mapping[str, str | int]

MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""500 revisions take 0.15 MB; MediaWiki itself cuts an answer at 12 MB by default."""

MAX_QUERY_LENGTH = 6_000
"""Characters of a query: the usual limit of servers is 8,000 for the whole request line."""

MAX_PAUSE_S = 86_400.0
"""Longest pause without a Retry-After: an API that was closed is looked at once a day."""

MAX_DETAIL = 200

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]").search


class ApiTroubleKind(StrEnum):
    """Why a request gave nothing."""

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


_FIRST_PAUSE_S: Mapping[ApiTroubleKind, float] = {
    ApiTroubleKind.LAGGED: 5.0,
    ApiTroubleKind.READ_ONLY: 60.0,
    ApiTroubleKind.RATE_LIMITED: 60.0,
    ApiTroubleKind.UNAVAILABLE: 60.0,
    ApiTroubleKind.UNREACHABLE: 60.0,
    ApiTroubleKind.CLOSED: 3_600.0,
    ApiTroubleKind.FORBIDDEN: 86_400.0,
    ApiTroubleKind.MOVED: 60.0,
    ApiTroubleKind.NOT_JSON: 600.0,
    # The request may have been at fault, and not the wiki: the next one is another.
    ApiTroubleKind.TOO_MANY: 1.0,
    ApiTroubleKind.BAD_CURSOR: 1.0,
    ApiTroubleKind.BROKEN: 2.0,
    ApiTroubleKind.HELD: 0.0,
}

_ERRORS: Mapping[str, ApiTroubleKind] = {
    "maxlag": ApiTroubleKind.LAGGED,
    "readonly": ApiTroubleKind.READ_ONLY,
    "ratelimited": ApiTroubleKind.RATE_LIMITED,
    "actionthrottledtext": ApiTroubleKind.RATE_LIMITED,
    "toomanyvalues": ApiTroubleKind.TOO_MANY,
    "too-many-titles": ApiTroubleKind.TOO_MANY,
    "badcontinue": ApiTroubleKind.BAD_CURSOR,
    "badcontinuation": ApiTroubleKind.BAD_CURSOR,
}

_CLOSED_PREFIXES = (
    *("readapidenied", "permissiondenied", "permissionserror", "badaccess", "blocked"),
    *("autoblocked", "mustbeloggedin", "notloggedin", "apidisabled", "moduledisabled"),
    *("unknown_action", "assert", "readrequired", "invalidaction"),
)


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """What a query brought.

    Attributes:
        query: the `query` object.
        cursor: the `continue` object, None at the end.
        warnings: the texts of its warnings.
        served_at: the wiki's own time of the answer (`curtimestamp`), None where it says none.
    """

    query: Mapping[str, object]
    cursor: Parameters | None = None
    warnings: tuple[str, ...] = ()
    served_at: float | None = None


@dataclass(frozen=True, slots=True)
class ApiTrouble:
    """Why a query brought nothing.

    Attributes:
        trouble: the kind.
        detail: short text for a person; of a move, where to.
        retry_after_s: what the server asked for.
        limit: the most values it takes, where that was the trouble.
    """

    trouble: ApiTroubleKind
    detail: str
    retry_after_s: float | None = None
    limit: int | None = None

    @property
    def is_host_trouble(self) -> bool:
        """Whether the host asks for rest, not the API alone."""
        return self.trouble in (
            ApiTroubleKind.RATE_LIMITED,
            ApiTroubleKind.UNAVAILABLE,
            ApiTroubleKind.UNREACHABLE,
        )

    def pause_s(self, count: int) -> float:
        """Return how long the API is left alone after so many troubles in a row, this included."""
        grown = _FIRST_PAUSE_S[self.trouble] * 2.0 ** min(max(count - 1, 0), 20)
        return max(min(grown, MAX_PAUSE_S), self.retry_after_s or 0.0)


def query_url(api_url: str, parameters: Parameters, *, maxlag_s: float) -> str:
    """Return the URL of a request.

    Args:
        api_url: the address of api.php.
        parameters: what to ask, a cursor included.
        maxlag_s: most the wiki's databases may lag behind.
    """
    # An empty `continue` asks versions before 1.26 for the cursors of today.
    fixed = {"format": "json", "formatversion": 2, "maxlag": f"{maxlag_s:g}", "continue": ""}
    return f"{api_url}?{urlencode({**fixed, **parameters})}"


def batch(values: Sequence[str], limit: int) -> list[str]:
    """Return as many first values as one request may name, at least one."""
    taken: list[str] = []
    length = 0
    for value in values[: max(limit, 1)]:
        length += len(urlencode({"": value})) + len("%7C")
        if taken and length > MAX_QUERY_LENGTH:
            break
        taken.append(value)
    return taken


def read_response(
    status: int, retry_after: str | None, body: bytes, *, now: float, location: str | None = None
) -> ApiResponse | ApiTrouble:
    """Return what an answer of the API means.

    Args:
        status: HTTP status.
        retry_after: the header, None without.
        body: the decoded body.
        now: instant of the answer, Unix seconds.
        location: the header of a redirect.
    """
    retry_after_s = parse_retry_after(retry_after, now) if retry_after else None
    said = _parsed(body)
    if said is None or not said.keys() & {"query", "error", "errors", "batchcomplete", "continue"}:
        return _by_status(status, retry_after_s, body, location)
    error = _error(said)
    if error is not None:
        return _by_error(error, retry_after_s)
    query = said.get("query")
    return ApiResponse(
        query if isinstance(query, dict) else {},
        _cursor(said),
        tuple(_warnings(said)),
        timestamp_of(said, "curtimestamp"),
    )


def _parsed(body: bytes) -> dict[str, object] | None:
    if len(body) > MAX_ANSWER_BYTES or body.lstrip()[:1] != b"{":
        return None
    text = body.decode("utf-8", "replace")
    try:
        said = json.loads(text)
        if _ESCAPED_SURROGATE(text):
            # Half a pair can be escaped, but neither stored nor sent: a mark takes its place.
            said = json.loads(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):  # also: numbers of thousands of digits
        return None
    return said if isinstance(said, dict) else None


def _by_status(
    status: int, retry_after_s: float | None, body: bytes, location: str | None
) -> ApiTrouble:
    if status == 429:
        return ApiTrouble(ApiTroubleKind.RATE_LIMITED, "status 429", retry_after_s)
    if status >= 500 or (status == 403 and retry_after_s):
        return ApiTrouble(ApiTroubleKind.UNAVAILABLE, f"status {status}", retry_after_s)
    if 300 <= status < 400:
        return ApiTrouble(ApiTroubleKind.MOVED, (location or "")[:2_000], retry_after_s)
    if status in (413, 414, 431):
        return ApiTrouble(ApiTroubleKind.TOO_MANY, f"status {status}: the request is too long")
    if status >= 400:
        return ApiTrouble(ApiTroubleKind.CLOSED, f"status {status}", retry_after_s)
    start = body[:60].decode("utf-8", "replace")
    return ApiTrouble(
        ApiTroubleKind.NOT_JSON, f"no JSON: {' '.join(start.split())!r}", retry_after_s
    )


def _error(said: Mapping[str, object]) -> Mapping[str, object] | None:
    error = said.get("error")
    if error is None and isinstance(errors := said.get("errors"), list) and errors:
        error = errors[0]
    if error is None:
        return None
    return error if isinstance(error, dict) else {"code": error}


def _by_error(error: Mapping[str, object], retry_after_s: float | None) -> ApiTrouble:
    code = _written(error.get("code"))
    detail = f"{code}: {_written(error.get('info') or error.get('text'))}"[:MAX_DETAIL]
    trouble = _ERRORS.get(code)
    if trouble is None:
        closed = code.startswith(_CLOSED_PREFIXES)
        trouble = ApiTroubleKind.CLOSED if closed else ApiTroubleKind.BROKEN
    data = error.get("data")
    limits = [row.get("limit") for row in (error, data) if isinstance(row, dict)]
    limit = next((limit for limit in limits if isinstance(limit, int) and limit > 0), None)
    return ApiTrouble(trouble, detail, retry_after_s, limit)


def _written(value: object) -> str:
    """Return what should be a text as one: whatever else it holds may be nested without end."""
    return str(value) if isinstance(value, str | int | float) else ""


def _cursor(said: Mapping[str, object]) -> Parameters | None:
    cursor = said.get("continue")
    if not isinstance(cursor, dict) or not cursor:
        return None
    return {str(key): value for key, value in cursor.items() if isinstance(value, str | int)}


def _warnings(said: Mapping[str, object]) -> list[str]:
    warnings = said.get("warnings")
    if isinstance(warnings, dict):
        rows = [(str(key), row) for key, row in warnings.items()]
    else:
        rows = [("", row) for row in warnings] if isinstance(warnings, list) else []
    found = []
    for module, row in rows:
        text = row.get("warnings", row.get("*", row.get("text"))) if isinstance(row, dict) else row
        found.append(f"{module}: {_written(text)}"[:MAX_DETAIL])
    return found
