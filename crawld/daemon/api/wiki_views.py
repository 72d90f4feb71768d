"""Describe wikis, the parts of them that sites cover, and why a page belongs to one."""

from __future__ import annotations

from typing import Final

from crawld.daemon.api.schemas import status
from crawld.daemon.daemon import Daemon
from crawld.sources.mediawiki_listed import ListedTitle, TitleOutcome
from crawld.sources.mediawiki_members import MemberReason, Membership
from crawld.sources.mediawiki_site import WikiFacts
from crawld.store.changes import wiki, wiki_event, wiki_listed, wiki_member
from crawld.store.changes.wiki import WikiRow
from crawld.store.changes.wiki_member import Part
from crawld.store.frontier.page import PageRecord

PROBLEMS_SHOWN: Final = 50


async def wiki_statuses(daemon: Daemon) -> list[status.WikiStatus]:
    """Return every identified wiki, with its pages by state."""
    found = []
    for row in await daemon.database.read(wiki.list_wikis):
        if row.api_url is None:
            continue
        named = {
            site_id: daemon.state.sites[site_id].name
            for site_id in row.site_ids
            if site_id in daemon.state.sites
        }
        found.append(
            status.WikiStatus(
                sites=list(named.values()),
                origin=row.origin,
                api_url=row.api_url,
                generator=WikiFacts.from_json(row.facts).generator if row.facts else None,
                pages=await daemon.database.read(wiki.progress, row.wiki_id),
                request_count=row.request_count,
                change_count=row.change_count,
                trouble=row.trouble,
                trouble_detail=row.trouble_detail,
                trouble_count=row.trouble_count,
                closed_until=row.closed_until,
                events_waiting=await daemon.database.read(wiki_event.count, row.wiki_id),
                parts=[
                    await _part(daemon, row, site_id, name)
                    for site_id, name in named.items()
                    if daemon.state.sites[site_id].config.wiki_scoped
                ],
            )
        )
    return found


async def _part(daemon: Daemon, row: WikiRow, site_id: int, name: str) -> status.WikiPartStatus:
    part, read = Part(site_id, row.wiki_id), daemon.database.read
    rows = await read(wiki_listed.list_problems, part, PROBLEMS_SHOWN)
    problems = [
        ListedTitle(each.written, each.title, TitleOutcome(each.outcome), each.detail).problem
        for each in rows
    ]
    return status.WikiPartStatus(
        site=name,
        members=await read(wiki_member.count_by_reason, part),
        listed=await read(wiki_listed.count_outcomes, part),
        problems=[each for each in problems if each is not None],
    )


async def memberships(daemon: Daemon, record: PageRecord) -> list[status.MembershipStatus]:
    """Return why a page belongs to the part of a wiki that its site covers; empty: it has none."""
    scope = daemon.state.wiki_scope.part(record.site_id, record.origin)
    if scope is None or not scope.scoped:
        return []
    title = scope.rules.title_of(record.url)
    rows = await daemon.database.read(wiki.list_wikis)
    found = [row for row in rows if row.origin == record.origin and title is not None]
    return [
        status.MembershipStatus(
            since=each.since,
            reason=Membership(each.title, MemberReason(each.reason), each.via).text,
        )
        for row in found
        for each in await daemon.database.read(
            wiki_member.reasons_of, Part(record.site_id, row.wiki_id), title or ""
        )
    ]
