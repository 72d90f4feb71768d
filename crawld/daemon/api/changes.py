"""Changes over the control socket: what visits and wikis told, as the feeds show it."""

from __future__ import annotations

from typing import Annotated

import apsw
from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException

from crawld.core.event import EventKind, event_urn
from crawld.daemon.api.lookup import canonical, parse_time
from crawld.daemon.api.parameters import After, Limit, Served
from crawld.daemon.api.schemas.changes import Changes, ChangeStatus
from crawld.store.frontier import site as site_rows
from crawld.store.mirror import events
from crawld.store.mirror.events import ALL_KINDS, NEWEST_ID, EventFilter, EventList

Size = Annotated[float, Query(ge=0.0, le=100.0, allow_inf_nan=False)]


def add_change_routes(router: APIRouter) -> None:
    """Add the route."""

    @router.get("/changes")
    async def changes(
        daemon: Served,
        after: After | None = None,
        before: After | None = None,
        since: str | None = None,
        site: str | None = None,
        url: str | None = None,
        kind: str | None = None,
        size: Size = 0.0,
        limit: Limit = 100,
    ) -> Changes:
        """Changes: the newest, those before an event, or oldest first after an event or a time.

        `kind` names some kinds with commas between them; `size` is the smallest, in per cent.
        """
        at = None if since is None else parse_time(since, daemon.clock.now())
        page_url = None if url is None else canonical(url)
        wanted = EventFilter(site, page_url, _kinds(kind), size / 100)
        if before is not None and (after is not None or at is not None):
            raise HTTPException(422, "before cannot be combined with after or since")
        return await daemon.database.read(_read, wanted, after, before, at, limit)


def _kinds(text: str | None) -> frozenset[EventKind]:
    if text is None:
        return ALL_KINDS
    try:
        return frozenset(EventKind(each.strip()) for each in text.split(","))
    except ValueError as error:
        raise HTTPException(422, f"the kinds are {', '.join(EventKind)}") from error


def _read(
    connection: apsw.Connection,
    wanted: EventFilter,
    after: int | None,
    before: int | None,
    since: float | None,
    limit: int,
) -> Changes:
    if wanted.site is not None and site_rows.by_name(connection, wanted.site) is None:
        raise HTTPException(404, f"site {wanted.site} is not known")
    if since is not None:
        after = max(after or 0, events.first_since(connection, since))
    found: EventList
    if after is not None:
        found = events.list_after(connection, after, limit, wanted)
    else:
        found = events.list_newest(connection, wanted, before or NEWEST_ID, limit)
    mirror_id = events.mirror_id(connection)
    shown = [
        ChangeStatus(
            event_id=each.event_id,
            id=event_urn(mirror_id, each.event_id),
            kind=each.kind.value,
            at=each.at,
            site=each.site,
            url=each.url,
            title=each.title,
            version_id=each.version_id,
            before_id=each.before_id,
            difference=each.difference,
            target_url=each.target_url,
        )
        for each in found.events
        if since is None or each.at >= since
    ]
    last_id = 0 if found.last_id == NEWEST_ID else found.last_id
    return Changes(events=shown, last_id=last_id, ended=found.ended)
