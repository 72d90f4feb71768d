"""The commands of the control socket about what is kept: copies held, taken down, given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException

from crawld.core.instant import parse_instant
from crawld.daemon.keeping_models import PinForm, PinStatus
from crawld.daemon.lookup import known_page
from crawld.daemon.models import Done
from crawld.errors import OperatorError
from crawld.store import pin as pin_rows

if TYPE_CHECKING:
    from crawld.daemon.app import Daemon


def keeping_routes(daemon: Daemon) -> APIRouter:
    """Return the routes about what is kept."""
    router = APIRouter()
    _pins(router, daemon)
    return router


def _pins(router: APIRouter, daemon: Daemon) -> None:
    @router.get("/pins")
    async def pins(
        after: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    ) -> list[PinStatus]:
        """Pages that are held at a copy, from the one after a page number."""
        rows = await daemon.database.read(pin_rows.list_pins, after=after, limit=limit)
        return [_pin_status(row) for row in rows]

    @router.post("/pin")
    async def pin(form: PinForm) -> Done:
        """Hold a page at the copy in force at a time, or let it go on."""
        page = await known_page(daemon, form.url)
        if form.release:
            if not await daemon.database.write(pin_rows.release, page.page_id):
                raise OperatorError(f"{page.url} is not held", hint="see: crawlctl pin")
            return Done(done=f"{page.url} shows its newest copy again")
        now = daemon.clock.now()
        at = now if form.at is None else _instant(form.at, now)
        row = await daemon.database.write(pin_rows.put, page.page_id, now, at)
        if row is None:
            raise HTTPException(404, f"{page.url} had no copy then; see: history")
        return Done(done=f"{page.url} is held at version {row.version_id}; newer ones are kept")


def _instant(text: str, now: float) -> float:
    try:
        return parse_instant(text, now)
    except OperatorError as error:
        raise HTTPException(422, str(error)) from error


def _pin_status(row: pin_rows.PinRow) -> PinStatus:
    return PinStatus(**{name: getattr(row, name) for name in PinStatus.model_fields})
