"""Which changes of a wiki may change the parts that its sites cover."""

from dataclasses import replace

import pytest

from crawld.daemon.frontier.wiki_events import find_events
from crawld.sources.mediawiki_changes import TitleChange
from crawld.sources.mediawiki_history import LogEntry
from crawld.sources.mediawiki_scope import TitleScope
from crawld.sources.mediawiki_title import Namespace, TitleRules
from crawld.store.changes.wiki_event import WikiEvent

AT = 1_780_000_000.0
RULES = TitleRules(
    article_path="/wiki/$1",
    script="/w/index.php",
    namespaces={0: Namespace(0, ""), 14: Namespace(14, "Category")},
    names={"category": 14},
)
WHOLE = TitleScope(RULES)
LISTED = TitleScope(
    RULES,
    scoped=True,
    prefixes=("List of ",),
    members=frozenset({"A", "Old"}),
    redirects=frozenset({"Old"}),
)
CATEGORY = TitleScope(RULES, scoped=True, has_categories=True, followed=frozenset({"Category:X"}))


def logged(kind, title, target=None, **more):
    entry = LogEntry(1, AT, kind, target)
    return TitleChange(title, 0, AT, entry=entry, kind="log", **more)


def category(title):
    return TitleChange(title, 14, AT, kind="category", member=7)


def test_a_rename_concerns_every_site():
    found = find_events([logged("move", "Z", "Y")] * 2, [WHOLE])
    assert found == [WikiEvent("move", "Z", AT, "Y", leaves_redirect=True)]


@pytest.mark.parametrize(
    ("moves", "event"),
    [
        ([], WikiEvent("page", "Z", AT, page_number=7)),
        ([logged("move", "Z", "Y")], WikiEvent("category", "Category:X", AT, page_number=7)),
    ],
)
def test_an_edited_page_that_enters_a_category_is_asked_for_by_its_title(moves, event):
    edit = TitleChange("Z", 0, AT, number=7)
    other = TitleChange("W", 0, AT, number=8)
    found = find_events([edit, other, category("Category:X"), *moves], [CATEGORY])
    assert next(each for each in found if each.kind != "move") == event


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (TitleChange("A", 0, AT, kind="new"), LISTED),
        (TitleChange("List of B", 0, AT, kind="new"), LISTED),
        (TitleChange("A", 0, AT, is_redirect=True), LISTED),
        (TitleChange("Old", 0, AT), LISTED),
        (logged("deletion", "A"), LISTED),
        (logged("restoration", "Z"), CATEGORY),
        (TitleChange("Template:T", 10, AT), CATEGORY),
        (TitleChange("Z", 0, AT, kind="log", is_rewritten=True), CATEGORY),
    ],
)
def test_a_page_is_asked_for(change, part):
    assert find_events([change], [WHOLE, part]) == [WikiEvent("page", change.title, AT)]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (TitleChange("A", 0, AT), LISTED),
        (TitleChange("Template:T", 10, AT), LISTED),
        (TitleChange("Z", 0, AT, kind="new"), LISTED),
        (TitleChange("Z", 0, AT, is_redirect=True), LISTED),
        (logged("restoration", "Z"), LISTED),
        (TitleChange("Z", 0, AT, kind="new"), CATEGORY),
        (category("Category:Y"), CATEGORY),
        (category("Category:X"), LISTED),
        (TitleChange("Category:X", 14, AT, kind="category"), CATEGORY),
        (logged("deletion", "A"), WHOLE),
    ],
)
def test_other_changes_concern_no_part(change, part):
    assert find_events([change], [part]) == []


@pytest.mark.parametrize("kind", ["edit", "new"])
def test_each_edit_concerns_categories_that_the_wiki_does_not_report(kind):
    change = TitleChange("Z", 0, AT, kind=kind)
    found = find_events([change], [LISTED, CATEGORY], tells_categories=False)
    assert found == [WikiEvent("page", "Z", AT)]
    assert find_events([change], [WHOLE, LISTED], tells_categories=False) == []


def test_a_category_counts_as_followed_before_the_first_listing():
    event = WikiEvent("category", "Category:Y", AT, page_number=7)
    assert find_events([category("Category:Y")], [replace(CATEGORY, followed=None)]) == [event]
