"""The scope of a site: which URLs are admitted by host, depth, include and exclude rules.

A URL is refused for the first of these reasons, cheapest first: `scheme`, `depth`, `host`,
`exclude`, `include`. Exclusion always beats inclusion. Without include rules everything on the
hosts in scope is included.

Rules match the canonical URL (`core/url.py`). A `prefix` or `glob` that starts with "/" is matched
against the target (path and query) on any host in scope, any other against the whole URL. In a
glob, `*` matches any run of characters, including slashes. Letters outside ASCII in a prefix or
glob are percent-encoded first, so that "/wiki/Café" works. A `regex` is searched for in the whole
URL, as written. Python's `re` has no time limit: the operator is responsible for a pattern with
nested repetition.
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
        ConfigError: the kind is unknown, or the pattern is empty or cannot be compiled.
    """

    kind: Literal["prefix", "glob", "regex"]
    pattern: str

    def __post_init__(self) -> None:
        if self.kind not in RULE_KINDS:
            raise ConfigError(
                f"unknown rule kind {self.kind!r}", hint=f"use one of {', '.join(RULE_KINDS)}"
            )
        if not self.pattern:
            raise ConfigError(f"a {self.kind} rule is empty", hint="give a pattern or remove it")
        if self.kind == "regex":
            _compile_regex(self.pattern)
        elif self.kind == "prefix":
            _canonical_prefix(self.pattern)


@dataclass(frozen=True, slots=True)
class _CompiledRules:
    """Compiled include or exclude rules: prefixes and patterns, for the URL and for its target."""

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
    """The scope of one site.

    Attributes:
        include: rules of included URLs; empty = everything on the hosts.
        exclude: rules of excluded URLs.
        max_depth: links away from a seed (a seed is 0); None = no limit.
        hosts: host names in scope (IPv6 without brackets), from the seeds and the config. Without
            hosts nothing is admitted.
        subdomains: whether hosts below those are in scope too.
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
        """Return the reason to refuse a canonical URL (see above), None if it is admitted."""
        if not url.startswith(("http://", "https://")):
            return "scheme"
        if self.max_depth is not None and depth > self.max_depth:
            return "depth"
        if not self.has_host(host):
            return "host"
        if self._exclude is None and self._include is None:
            return None
        path_at = url.index("/", 8)
        if self._exclude is not None and self._exclude.matches(url, path_at):
            return "exclude"
        if self._include is not None and not self._include.matches(url, path_at):
            return "include"
        return None

    def has_host(self, host: str) -> bool:
        """Return whether a host is in scope."""
        return host in self.hosts or (self.subdomains and self._below(host))

    def excluding_rule(self, url: str) -> int | None:
        """Return the place in `exclude` of the first rule that excludes a canonical URL, or None.

        For explanations: `refusal` needs no such search.
        """
        return _first_match(self.exclude, url)

    def including_rule(self, url: str) -> int | None:
        """Return the place in `include` of the first rule that includes a canonical URL, or None.

        Without include rules everything is included.
        """
        return _first_match(self.include, url)

    def _below(self, host: str) -> bool:
        _, dot, parent = host.partition(".")
        while dot:
            if parent in self.hosts:
                return True
            _, dot, parent = parent.partition(".")
        return False


def _first_match(rules: tuple[ScopeRule, ...], url: str) -> int | None:
    path_at = url.index("/", 8)
    for at, rule in enumerate(rules):
        compiled = _compile_rules((rule,))
        if compiled is not None and compiled.matches(url, path_at):
            return at
    return None


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
    # One alternation needs one call, regardless of the number of globs.
    if not globs:
        return ()
    return (re.compile("|".join(fnmatch.translate(glob) for glob in globs)).match,)


def _compile_regex(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"the regex {pattern!r} does not compile: {error}",
            hint="fix it, or use a prefix or glob rule",
        ) from None


def _canonical_prefix(pattern: str) -> str:
    if pattern.startswith("/"):
        return _ascii(pattern)
    scheme, sign, rest = pattern.partition("://")
    host, slash, tail = rest.partition("/")
    try:
        # Only the origin is canonicalized: dot segments or a "?" at the end of a prefix stay as
        # written. The closing slash keeps https://a.org from matching https://a.org.evil.example/.
        return canonicalize(f"{scheme}{sign}{host}/") + (_ascii(tail) if slash else "")
    except InvalidUrlError:
        raise ConfigError(
            f"the prefix {pattern!r} begins neither a URL nor a path",
            hint='begin it with "https://host/" or with "/"',
        ) from None


def _ascii(pattern: str) -> str:
    return _OUTSIDE_ASCII.sub(
        lambda run: "".join(f"%{byte:02X}" for byte in run[0].encode(errors="replace")), pattern
    )
