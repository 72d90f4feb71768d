"""Asks a wiki how many pages use its templates and files, before any of them is edited.

Two requests a day: without them nobody could say how many copies the first edit of a template
makes stale until its pages are listed.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from crawld.core.units import DAY_S
from crawld.daemon.hints.source import HELD, Poll, PollTrouble
from crawld.daemon.hints.wiki_source import WikiSource
from crawld.sources.mediawiki_usage import USAGE_LISTS, read_usage, usage_query
from crawld.store.changes import template_use
from crawld.store.changes.hint_source import SourceRow
from crawld.store.changes.template_use import Survey

SURVEY_S: Final = DAY_S
"""Pause between two surveys."""

RETRY_S: Final = 3_600.0
"""Pause after one that the wiki refused."""


async def survey(source: WikiSource, row: SourceRow) -> Poll | PollTrouble:
    """Ask for the uses of templates if the last answer is old; return what to store, and a pause.

    A refusal is no trouble of the source: it still lists the pages of edited templates.
    """
    now, number = source.clock.now(), row.hint_source_id
    last_at = await source.database.read(template_use.surveyed_at, number)
    due_at = now if last_at is None else min(last_at, now) + SURVEY_S
    if due_at > now:
        return Poll(at=now, cursor=row.cursor, requests=0, wait_s=due_at - now)
    at, requests = now, 0
    uses: dict[str, int] = {}
    for name in USAGE_LISTS:
        response = await source.ask(usage_query(name), row)
        if isinstance(response, PollTrouble):
            if response.trouble == HELD:
                return response
            at, requests = now - SURVEY_S + RETRY_S, requests + response.requests
            continue
        uses, requests = uses | read_usage(response), requests + 1
    known = Survey(at, source.wiki.facts.articles, uses)
    return Poll(
        at=source.clock.now(),
        cursor=row.cursor,
        requests=requests,
        wait_s=at + SURVEY_S - now,
        also_write=partial(template_use.put, hint_source_id=number, survey=known),
    )
