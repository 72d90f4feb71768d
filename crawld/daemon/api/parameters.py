"""Types of parameters, and the responses that every route may give."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from crawld.daemon.api.schemas.form import MAX_ROW_ID
from crawld.daemon.api.schemas.status import InvalidRequest, Problem
from crawld.daemon.daemon import Daemon


async def _served(request: Request) -> Daemon:
    daemon: Daemon = request.app.state.daemon
    return daemon


Served = Annotated[Daemon, Depends(_served)]
"""The daemon of the application. Routes hold none, so that a process makes them once."""

After = Annotated[int, Query(ge=0, le=MAX_ROW_ID)]
Limit = Annotated[int, Query(ge=1, le=10_000)]

_SCHEMAS: Final = "#/components/schemas/"


def _failure(description: str, schema: type[BaseModel] = Problem) -> dict[str, Any]:
    """Describe a failure by the name of its schema.

    FastAPI would make a validator of each schema for each route, 300 in all, and never use them.
    """
    reference = {"$ref": _SCHEMAS + schema.__name__}
    return {"description": description, "content": {"application/json": {"schema": reference}}}


RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    400: _failure("The request body is not JSON"),
    404: _failure("A page, host, site or job is not known"),
    409: _failure("The daemon cannot do this now"),
    413: _failure("The request body is too long"),
    422: _failure("A parameter or a field is not valid", InvalidRequest),
    500: _failure("A bug: the log has the traceback"),
    503: _failure("The database cannot be used, or too many requests"),
}
"""The failures that every route may answer with."""


def add_failure_schemas(described: dict[str, Any]) -> None:
    """Add the schemas that `RESPONSES` names to an OpenAPI description."""
    _, found = models_json_schema(
        [(Problem, "serialization"), (InvalidRequest, "serialization")],
        ref_template=_SCHEMAS + "{model}",
    )
    components = described.setdefault("components", {})
    components["schemas"] = dict(sorted((components.get("schemas", {}) | found["$defs"]).items()))
