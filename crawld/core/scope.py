"""Which URLs belong to a site: pure admission by host, depth, include and exclude rules.

A URL is refused for the first of these reasons, cheapest first: `scheme`, `depth`, `host`,
`exclude`, `include`. Exclusion always beats inclusion. Without include rules everything on the
hosts in scope is included.

Rules read the canonical spelling (`core/url.py`). A `prefix` or `glob` that starts with "/" is held
against the target (path and query) of any host in scope, any other against the whole URL; in a
glob, `*` stands for any run of characters, slashes included. Letters outside ASCII in a prefix or
glob are percent-encoded first, so that "/wiki/Café" means what it says; a `regex` is searched for
in the whole URL as it is written. Python's `re` cannot bound its own effort: a pattern with nested
repetition is the operator's own cost.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from crawld.core.url import canonicalize
from crawld.errors import ConfigError, InvalidUrlError

RULE_KINDS = ("prefix", "glob", "regex")

_OUTSIDE_ASCII = re.compile(r"[^\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class ScopeRule:
    """One include or exclude rule of a site.

    Raises:
        ConfigError: unknown kind, empty pattern, or a pattern that cannot be compiled.
    """

    kind: Literal["prefix", "glob", "regex"]
    pattern: str

    def __post_init__(self) -> None:
        if self.kind not in RULE_KINDS:
            raise ConfigError(
                f"unknown kind of rule {self.kind!r}", hint=f"use one of {', '.join(RULE_KINDS)}"
            )
        if not self.pattern:
            raise ConfigError(f"a {self.kind} rule is empty", hint="give a pattern or remove it")
        if self.kind == "regex":
            _compile_regex(self.pattern)
        elif self.kind == "prefix":
            _canonical_prefix(self.pattern)


@dataclass(frozen=True, slots=True)
class _CompiledRules:
    """Compiled rules: what starts the URL, what starts the target, what is searched for."""

    url_prefixes: tuple[str, ...]
    target_prefixes: tuple[str, ...]
    url_patterns: tuple[Callable[[str], object], ...]
    target_patterns: tuple[Callable[[str, int], object], ...]

    def matches(self, url: str, path_at: int) -> bool:
        """Return whether any rule matches a URL whose path begins at `path_at`."""
        # Plain loops and offsets: a generator or a slice costs as much as the match itself.
        if url.startswith(self.target_prefixes, path_at) or url.startswith(self.url_prefixes):
            return True
        for search in self.url_patterns:
            if search(url):
                return True
        for match in self.target_patterns:  # noqa: SIM110
            if match(url, path_at):
                return True
        return False


@dataclass(frozen=True, slots=True)
class Scope:
    """The fence around one site.

    Attributes:
        include: what is wanted; empty = everything on the hosts.
        exclude: what is never wanted.
        max_depth: links away from a seed, seeds being 0; None = no limit.
        hosts: host names in scope (IPv6 without brackets), those of the seeds and those the
            operator added; a scope without hosts admits nothing.
        subdomains: hosts below those are in scope too.
    """

    include: tuple[ScopeRule, ...] = ()
    exclude: tuple[ScopeRule, ...] = ()
    max_depth: int | None = None
    hosts: frozenset[str] = frozenset()
    subdomains: bool = False
    _include: _CompiledRules | None = field(init=False, repr=False, compare=False)
    _exclude: _CompiledRules | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_include", _compile_rules(self.include))
        object.__setattr__(self, "_exclude", _compile_rules(self.exclude))

    def refusal(self, url: str, host: str, depth: int) -> str | None:
        """Return why a canonical URL stays outside, or None where it is admitted.

        Args:
            url: canonical URL.
            host: its host, IPv6 without brackets.
            depth: links away from a seed.

        Returns:
            None, "scheme", "depth", "host", "exclude" or "include".
        """
        if not url.startswith(("http://", "https://")):
            return "scheme"
        if self.max_depth is not None and depth > self.max_depth:
            return "depth"
        if host not in self.hosts and not (self.subdomains and self._below(host)):
            return "host"
        if self._exclude is None and self._include is None:
            return None
        path_at = url.index("/", 8)
        if self._exclude is not None and self._exclude.matches(url, path_at):
            return "exclude"
        if self._include is not None and not self._include.matches(url, path_at):
            return "include"
        return None

    def _below(self, host: str) -> bool:
        _, dot, parent = host.partition(".")
        while dot:
            if parent in self.hosts:
                return True
            _, dot, parent = parent.partition(".")
        return False


def _compile_rules(rules: tuple[ScopeRule, ...]) -> _CompiledRules | None:
    if not rules:
        return None
    prefixes = [_canonical_prefix(rule.pattern) for rule in rules if rule.kind == "prefix"]
    globs = [_ascii(rule.pattern) for rule in rules if rule.kind == "glob"]
    searches = [_compile_regex(rule.pattern).search for rule in rules if rule.kind == "regex"]
    return _CompiledRules(
        tuple(prefix for prefix in prefixes if prefix[0] != "/"),
        tuple(prefix for prefix in prefixes if prefix[0] == "/"),
        (*_compile_globs([glob for glob in globs if glob[0] != "/"]), *searches),
        _compile_globs([glob for glob in globs if glob[0] == "/"]),
    )


def _compile_globs(globs: list[str]) -> tuple[Callable[..., object], ...]:
    # One alternation costs one call however many globs a site lists.
    if not globs:
        return ()
    return (re.compile("|".join(fnmatch.translate(glob) for glob in globs)).match,)


def _compile_regex(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"the regex {pattern!r} does not compile: {error}",
            hint="mend it, or use a prefix or glob rule",
        ) from None


def _canonical_prefix(pattern: str) -> str:
    if pattern.startswith("/"):
        return _ascii(pattern)
    scheme, sign, rest = pattern.partition("://")
    host, slash, tail = rest.partition("/")
    try:
        # Only the origin: dot segments or a "?" at the end of a prefix must stay as written.
        # Its closing slash keeps https://a.org from matching https://a.org.evil.example/.
        return canonicalize(f"{scheme}{sign}{host}/") + (_ascii(tail) if slash else "")
    except InvalidUrlError:
        raise ConfigError(
            f"the prefix {pattern!r} is neither the beginning of a URL nor of a path",
            hint='begin it with "https://host/" or with "/"',
        ) from None


def _ascii(pattern: str) -> str:
    return _OUTSIDE_ASCII.sub(
        lambda run: "".join(f"%{byte:02X}" for byte in run[0].encode(errors="replace")), pattern
    )
