"""Which pages a wiki's recent changes report as deleted, moved away, or there again."""

from __future__ import annotations

from collections.abc import Sequence

from crawld.core.url import url_hash
from crawld.daemon.hints.wiki_source import ClockSkew
from crawld.sources.mediawiki_changes import TitleChange
from crawld.sources.mediawiki_title import TitleRules
from crawld.store.frontier.removal import RemovalReport


def shows_another_page(change: TitleChange) -> bool:
    """Whether a changed title has a page since, or another one: it was moved there, or restored."""
    gone = change.entry is not None and change.entry.kind in ("deletion", "move")
    return change.kind == "log" and not gone and not change.is_rewritten


def removal_reports(
    changed: Sequence[TitleChange], titles: TitleRules, origin: str, skew: ClockSkew
) -> list[RemovalReport]:
    """Return a report for each changed title, in their order, which is that of time.

    Any change of a title but a deletion or a move away shows that it has a page. A page that moves
    leaves a redirect as a rule; the visit that confirms the move finds it.
    """
    found = []
    for each in changed:
        url = titles.url_of(each.title, origin)
        if url is None:
            continue
        kind = each.entry.kind if each.entry is not None else None
        gone = kind if kind == "deletion" or kind == "move" else None
        target = each.entry.target if each.entry is not None and gone == "move" else None
        target_url = titles.url_of(target, origin) if target else None
        found.append(RemovalReport(url_hash(url), gone, *skew.span(each.at), target_url))
    return found
