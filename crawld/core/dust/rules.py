"""The rules of a host, and the URL that stands for a URL under them.

A rule is a rewrite that holds in one section of its host. The section of a URL is the first segment
of its path after all path rewrites of the host, if that segment is a section of its own (many URLs
begin with it), else the rest of the host, "". So two spellings of a section are one section.

Invariants: `HostRules.apply` never changes the origin, is idempotent, and takes time linear in the
URL. It leaves a URL as it is if the rewrites do not settle, or lead to no canonical URL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from crawld.core.dust.rewrite import (
    ORDER,
    Rewrite,
    RewriteForm,
    join_target,
    rewrite_path,
    rewrite_query,
    split_target,
)
from crawld.core.url import canonicalize, target_of
from crawld.errors import InvalidUrlError

MAX_PATH_RULES: Final = 24
"""Path rewrites of a host that are applied; each reads the path once."""

MAX_PASSES: Final = 4
"""Passes after which rewrites that still change a URL are taken to oscillate."""

MAX_TARGET: Final = 2_000
"""Longer targets are left as they are."""


class DustRule(NamedTuple):
    """A rewrite that holds in a section of a host."""

    rewrite: Rewrite
    section: str


@dataclass(frozen=True, slots=True)
class Mapped:
    """The URL that stands for a URL.

    Attributes:
        url: canonical, of the same origin.
        used: the rules that changed it, in the order of their use.
    """

    url: str
    used: tuple[DustRule, ...]


def _place(rewrite: Rewrite) -> tuple[int, str, str]:
    return ORDER[rewrite.form], rewrite.name, rewrite.value


class _SectionRules:
    """The rules of one section, by what they look up."""

    __slots__ = ("dropped", "path", "sorts", "values")

    def __init__(self, rewrites: Iterable[Rewrite]) -> None:
        ordered = sorted(rewrites, key=_place)
        self.path = [one for one in ordered if one.is_of_path][:MAX_PATH_RULES]
        self.dropped = {one.name: one for one in ordered if one.form is RewriteForm.DROP}
        self.values = {
            f"{one.name}={one.value}": one for one in ordered if one.form is RewriteForm.VALUE
        }
        self.sorts = next((one for one in ordered if one.form is RewriteForm.SORT), None)


class HostRules:
    """The rules that hold on one host."""

    def __init__(self, rules: Iterable[DustRule] = (), sections: Iterable[str] = ()) -> None:
        """Prepare rules.

        Args:
            rules: that hold.
            sections: first segments that are sections of their own.
        """
        self.rules = frozenset(rules)
        self.sections = frozenset(sections)
        by_section: dict[str, list[Rewrite]] = {}
        for rule in self.rules:
            by_section.setdefault(rule.section, []).append(rule.rewrite)
        self._of = {section: _SectionRules(found) for section, found in by_section.items()}
        paths = {one for found in by_section.values() for one in found if one.is_of_path}
        self._paths = sorted(paths, key=_place)[:MAX_PATH_RULES]
        self._has_more_paths = len(paths) > MAX_PATH_RULES

    def __bool__(self) -> bool:
        return bool(self.rules)

    def with_rewrite(self, rewrite: Rewrite) -> HostRules:
        """Return these rules and a rewrite that is on trial, in every section."""
        tried = {DustRule(rewrite, section) for section in (*self.sections, "")}
        return HostRules(self.rules | tried, self.sections)

    def section_of(self, target: str) -> str:
        """Return the section of a target; "" is the rest of the host."""
        return self._section_of_path(split_target(target)[0])[0]

    def _section_of_path(self, path: str) -> tuple[str, bool]:
        """Return the section of a path, and whether a path rewrite of any section may change it."""
        settled, is_changed = path, self._has_more_paths
        for rewrite in self._paths:
            before = settled
            settled = rewrite_path(before, rewrite)
            is_changed = is_changed or settled != before
        first = settled.split("/", 2)[1]
        return first if first in self.sections else "", is_changed

    def apply(self, url: str) -> Mapped | None:
        """Return the URL that stands for a canonical URL; None: it stands for itself."""
        target = target_of(url)
        found = self.apply_to_target(target)
        if found is None:
            return None
        mapped, used = found
        whole = url[: len(url) - len(target)] + mapped
        try:
            if canonicalize(whole) != whole:
                return None
        except InvalidUrlError:
            return None
        return Mapped(whole, used)

    def apply_to_target(self, target: str) -> tuple[str, tuple[DustRule, ...]] | None:
        """Return what stands for a target, and the rules used; None: it stands for itself."""
        if not self._of or len(target) > MAX_TARGET:
            return None
        used: dict[DustRule, None] = {}
        mapped = target
        for _ in range(MAX_PASSES):
            before = mapped
            mapped = self._pass(mapped, used)
            if mapped == before:
                return None if mapped == target else (mapped, tuple(used))
        return None

    def _pass(self, target: str, used: dict[DustRule, None]) -> str:
        path, query = split_target(target)
        section, is_changed = self._section_of_path(path)
        rules = self._of.get(section)
        if rules is None:
            return target
        for rewrite in rules.path if is_changed else ():
            changed = rewrite_path(path, rewrite)
            if changed != path:
                path = changed
                used[DustRule(rewrite, section)] = None
        if query and (rules.dropped or rules.values):
            kept = []
            for item in query.split("&"):
                dropped = rules.values.get(item) or rules.dropped.get(item.partition("=")[0])
                if dropped is None:
                    kept.append(item)
                else:
                    used[DustRule(dropped, section)] = None
            query = "&".join(kept)
        if query and rules.sorts is not None:
            ordered = rewrite_query(query, rules.sorts)
            if ordered != query:
                query = ordered
                used[DustRule(rules.sorts, section)] = None
        return join_target(path, query)


NO_RULES: Final = HostRules()
