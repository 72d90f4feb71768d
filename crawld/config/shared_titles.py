"""Finds titles of one wiki that two sites name, with different rules for their visits.

A page has one site, for which it is visited. Which site that is depends on who finds it first, so
the operator should know. Pages of two categories are not known before the wiki is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

from crawld.config.seeds import read_wiki_titles
from crawld.config.site import SiteConfig
from crawld.core.wiki_title import join_spaces
from crawld.errors import ConfigError

_NO_RULES: Final = {
    *("name", "seeds", "seeds_file", "titles_file", "title_url", "api"),
    *("wiki_titles", "wiki_categories", "wiki_category_depth", "wiki_prefixes"),
}
"""Keys that say which pages a site has, not how they are visited."""


def shared_titles(
    sites: Sequence[SiteConfig], origins: Mapping[str, set[str]]
) -> Iterator[tuple[int, str]]:
    """Yield the index of a site, and what it and an earlier site of the same wiki both name.

    Args:
        origins: of the seeds of each site, by its name.
    """
    of_origin: dict[str, list[int]] = defaultdict(list)
    for index, site in enumerate(sites):
        for origin in origins.get(site.name, ()) if site.api else ():
            of_origin[origin].append(index)
    pairs = {pair for found in of_origin.values() for pair in combinations(found, 2)}
    titles = {index: _titles_of(sites[index]) for pair in pairs for index in pair}
    for first, second in sorted(pairs):
        what = _both_name(sites[first], sites[second], titles[first], titles[second])
        if what is not None and _rules(sites[first]) != _rules(sites[second]):
            yield second, f'site "{sites[second].name}" and site "{sites[first].name}" both {what}'


def _titles_of(site: SiteConfig) -> frozenset[str]:
    """Return the titles that a site lists, in its config and in its file."""
    try:
        return frozenset(map(join_spaces, read_wiki_titles(site)))
    except ConfigError:  # told by the check of the file
        return frozenset(map(join_spaces, site.wiki_titles))


def _both_name(
    first: SiteConfig, second: SiteConfig, titles: frozenset[str], others: frozenset[str]
) -> str | None:
    """Return what two sites both name, None if nothing; `titles` and `others` are listed."""
    if not first.wiki_scoped or not second.wiki_scoped:
        return "name titles of one wiki, one of them all titles"
    prefixes, beside = (
        tuple(each.replace("_", " ") for each in site.wiki_prefixes) for site in (first, second)
    )
    listed = (
        *(titles & others),
        *(title for title in titles if title.startswith(beside)),
        *(title for title in others if title.startswith(prefixes)),
    )
    if listed:
        more = f" and {len(listed) - 1} more" if len(listed) > 1 else ""
        return f"name the title {min(listed)!r}{more}"
    if same := set(first.wiki_categories) & set(second.wiki_categories):
        return f"name the category {min(same)!r}"
    same = {each for each in prefixes if each.startswith(beside)}
    same |= {each for each in beside if each.startswith(prefixes)}
    return f"name the prefix {min(same)!r}" if same else None


def _rules(site: SiteConfig) -> dict[str, object]:
    return site.model_dump(exclude=_NO_RULES)
