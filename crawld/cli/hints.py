"""`crawlctl hints`: the sources of change hints, their quality and cost."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from rich.console import RenderableType

from crawld.cli.output import clean
from crawld.cli.session import Session
from crawld.cli.tables import listing
from crawld.core.display import ago_text, count_text, duration_text
from crawld.core.words import trouble_label

if TYPE_CHECKING:
    from crawld.daemon.api.schemas.hints import HintSourceStatus

NO_SOURCES = (
    "no source reports changes, so visits find them; sources are the sitemaps in robots.txt, which"
    " the first visits find,\nand a site's feeds, listings, event_stream, and api = true on a wiki"
)


def hints(session: Session) -> None:
    """List the sources of change hints: reliability, lag, requests, gain."""
    response = session.client.get("/hints")
    session.show(response, partial(hints_table, now=time.time()))


def hints_table(found: list[HintSourceStatus], now: float) -> RenderableType:
    """Return the hint sources, one per line."""
    headings = (
        *(
            "source",
            "host",
            "sites",
            "polled",
            "next",
            "requests",
            "hints",
            "real",
            "false",
            "missed",
            "explained",
        ),
        *("trust", "miss rate", "lag", "gain", "waiting", "error"),
    )
    return listing(headings, [_line(each, now) for each in found], NO_SOURCES)


def _line(each: HintSourceStatus, now: float) -> tuple[str, ...]:
    next_s = None if each.next_poll_at is None else max(each.next_poll_at - now, 0.0)
    return (
        clean(each.kind.replace("_", " ")),
        clean(each.host),
        clean(", ".join(each.sites)),
        ago_text(each.last_poll_at, now),
        "" if next_s is None else duration_text(next_s),
        count_text(each.request_count),
        count_text(each.hint_count),
        count_text(each.real_count),
        count_text(each.false_count),
        count_text(each.missed_count),
        count_text(each.explained_count),
        f"{each.trust:.0%}",
        f"{each.missed_share:.0%}",
        "" if each.lag_s is None else duration_text(each.lag_s),
        "" if each.gain is None else f"{100.0 * each.gain:+.1f} points",
        count_text(each.outstanding),
        clean(": ".join(filter(None, (trouble_label(each.trouble), each.trouble_detail)))),
    )


COMMANDS = (hints,)
