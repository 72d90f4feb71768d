"""Texts of twins: the pages at one path of two hosts, in a form in which equal pages are equal.

Two copies of a page link to their own hosts, name their own addresses, and have noise that was
learnt on each host apart. So both texts are cleaned under the rules of both hosts, but those that
cover figures (`figures.twin_rules`); addresses of either host become paths, relative links are
resolved; and the page's own path is masked, so that one error page that repeats the path in its
text has one text on all paths.

Every step is the same function of both texts: equal texts stay equal, and texts that differ become
equal only if they differ in nothing but these addresses and this path. Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from urllib.parse import unquote, urljoin

from crawld.core.content.blocks import Blocks
from crawld.core.content.fingerprint import cleaned_digest
from crawld.core.content.targets import TARGET, TARGET_END, TARGET_START
from crawld.core.content.volatile import Cover, VolatileRules, cleaned, stable_blocks
from crawld.core.url import target_of

OWN_PATH = "\x1a"
"""Stands for the path of the page in its text."""

MIN_NAME = 3
"""Characters from which the last part of a path is masked in the text: shorter ones are words.

A number is not masked, since pages of a list may differ in little else.
"""

MOST_NOISY = 0.5
"""Share of the blocks of a page that rules for whole places may cover: of a page that is a table of
numbers, the numbers are no noise, though those of another page were."""

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,31}+:")


def twin_text(
    blocks: Blocks, url: str, origins: Collection[str], rules: VolatileRules | None = None
) -> str:
    """Return the comparable text of a page and its twin on another host.

    Args:
        blocks: of the page.
        url: its canonical URL.
        origins: those of both hosts.
        rules: noise rules of both pages and both hosts, joined.
    """
    text = cleaned(blocks, rules and _believed(blocks, rules))
    if origins:
        text = own_origin(origins).sub("", text)
    target = target_of(url)
    text = TARGET.sub(lambda match: _resolved(match[0][1:-1], target), text)
    for form in _forms(target):
        text = text.replace(form, OWN_PATH)
    return text


def own_origin(origins: Iterable[str]) -> re.Pattern[str]:
    """Return what matches an address of any of some origins, without its path."""
    names = "|".join(re.escape(origin.partition("//")[2]) for origin in origins)
    # The name ends here: neither a longer name nor another port follows.
    return re.compile(rf"(?:https?:)?//(?:{names})(?![\w-]|[.:]\w)", re.IGNORECASE)


def _believed(blocks: Blocks, rules: VolatileRules) -> VolatileRules:
    """Return the rules that leave enough of a page to tell it from another."""
    broad = tuple(rule for rule in rules.rules if rule.cover is not Cover.WORDING)
    noisy = stable_blocks(blocks, VolatileRules(broad)).noisy if broad else ()
    if len(noisy) <= MOST_NOISY * len(blocks.texts):
        return rules
    return VolatileRules(tuple(rule for rule in rules.rules if rule.cover is Cover.WORDING))


def twin_digest(text: str) -> bytes | None:
    """Return the digest of a text of `twin_text`, None for an empty one, which says nothing."""
    return cleaned_digest(text) if text.strip() else None


def _resolved(link: str, target: str) -> str:
    """Return a link target between its marks, relative to the host where it was to the page."""
    if not link:
        link = "/"  # the address of a host without a path
    elif link[0] == "?" or (link[0] not in "/#" and not _SCHEME.match(link)):
        link = _joined(target, link)
    return f"{TARGET_START}{link}{TARGET_END}"


def _joined(target: str, link: str) -> str:
    try:
        return urljoin(target, link)
    except ValueError:  # not a URL
        return link


def _forms(target: str) -> list[str]:
    """Return how a page may name its own path, the longest first; none for the root."""
    path = target.partition("?")[0]
    plain = unquote(path)
    name = plain.rstrip("/").rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    forms = {target, target.replace("&", "&amp;"), path, plain}
    words = [each for each in (name, stem) if not each.isdigit()]
    forms |= {form for each in words for form in (each, each.replace("_", " "))}
    long = {form for form in forms if len(form) >= (2 if form.startswith("/") else MIN_NAME)}
    return sorted(long, key=lambda form: (-len(form), form))
