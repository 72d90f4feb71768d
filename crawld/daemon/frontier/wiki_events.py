"""Find which reported changes of a wiki may change the parts that its sites cover.

A page may enter a part or leave it by a rename, a category, a creation, a deletion, a restoration,
or by becoming a redirect. Renames concern every site: the history follows to the new title.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from crawld.sources.mediawiki_changes import TitleChange
from crawld.sources.mediawiki_scope import TitleScope
from crawld.sources.mediawiki_title import TEMPLATE_SPACES
from crawld.store.changes.wiki_event import WikiEvent


def find_events(
    changed: Sequence[TitleChange],
    parts: Collection[TitleScope],
    *,
    tells_categories: bool = True,
) -> list[WikiEvent]:
    """Return the events among changes of a wiki, in their order and without repetitions.

    Args:
        parts: the parts of the wiki that its sites cover.
        tells_categories: whether the wiki reports who enters a category. If it does not, each edit
            may let a page enter one.
    """
    # A page that enters a category is edited as a rule. By its title it is asked for together with
    # all other titles; the wiki takes no numbers beside titles.
    titles = {each.number: each.title for each in changed if each.kind in ("edit", "new")}
    moved = {each.title for each in changed if each.entry and each.entry.kind == "move"}
    found = (
        _event(each, parts, titles, moved, tells_categories=tells_categories) for each in changed
    )
    return list(dict.fromkeys(event for event in found if event is not None))


def _event(
    change: TitleChange,
    parts: Collection[TitleScope],
    titles: Mapping[int | None, str],
    moved: Collection[str],
    *,
    tells_categories: bool,
) -> WikiEvent | None:
    title, entry = change.title, change.entry
    if change.kind == "category":
        if change.member is None or not any(part.follows(title) for part in parts):
            return None
        member = titles.get(change.member)
        if member is not None and member not in moved:
            return WikiEvent("page", member, change.at, page_number=change.member)
        return WikiEvent("category", title, change.at, page_number=change.member)
    if entry is not None and entry.kind == "move" and entry.target is not None:
        return WikiEvent("move", title, change.at, entry.target, entry.leaves_redirect)
    untold = not tells_categories and change.kind in ("edit", "new")
    scoped = [part for part in parts if part.scoped]
    if any(_concerns(change, part) or (untold and part.has_categories) for part in scoped):
        return WikiEvent("page", title, change.at)
    return None


def _concerns(change: TitleChange, part: TitleScope) -> bool:
    """Whether a page has to be asked for, since it may have entered or left a part."""
    if change.space in TEMPLATE_SPACES and part.has_categories:
        return True  # it may put the pages that use it into categories
    if change.kind == "edit":
        return (change.is_redirect or change.title in part.redirects) and part.has(change.title)
    # A restored or imported page brings its categories along; a created one is reported to them.
    brings = change.kind == "log" and (change.entry is not None or change.is_rewritten)
    return part.has(change.title) or (brings and part.has_categories)
