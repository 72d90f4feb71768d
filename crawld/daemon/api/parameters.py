"""Types of query parameters, and the responses that every route may give."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Query

from crawld.daemon.api.schemas.status import InvalidRequest, Problem

MAX_ROW_ID: Final = 2**63 - 1
"""The largest number that SQLite stores; Python's are unlimited."""

After = Annotated[int, Query(ge=0, le=MAX_ROW_ID)]
Limit = Annotated[int, Query(ge=1, le=10_000)]

RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": Problem, "description": "The request body is not JSON"},
    404: {"model": Problem, "description": "A page, host, site or job is not known"},
    409: {"model": Problem, "description": "The daemon cannot do this now"},
    413: {"model": Problem, "description": "The request body is too long"},
    422: {"model": InvalidRequest, "description": "A parameter or a field is not valid"},
    500: {"model": Problem, "description": "A bug: the log has the traceback"},
    503: {"model": Problem, "description": "The database cannot be used, or too many requests"},
}
"""The failures that every route may answer with."""
