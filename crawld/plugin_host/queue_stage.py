"""The queue stage: importance, admission and order of pages by plug-ins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple

from crawld.plugin_host.plugin import FAILED, Hook

MAX_FACTOR: Final = 1e6
"""Largest importance that a page may have, as in the config; its inverse is the smallest."""

MAX_FOUND: Final = 10_000
"""URLs that one plug-in may add to a site in one run."""

MAX_URL: Final = 8_000


MAX_REASON: Final = 200


class PluginRefusal(NamedTuple):
    """The plug-in that refuses a URL, and its reason in words; empty: it gives none."""

    plugin: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class QueueStage:
    """Hooks about the pages of one site; each tuple may be empty."""

    site: str
    weighers: tuple[Hook, ...] = ()
    admitters: tuple[Hook, ...] = ()
    orderers: tuple[Hook, ...] = ()

    @property
    def rules(self) -> bytes:
        """Digest of what the weights depend on: plug-ins, their files and options."""
        written = "\n".join(hook.plugin.rules for hook in self.weighers)
        return blake2b(written.encode("utf-8", "replace"), digest_size=16).digest()

    def weight(self, url: str) -> float:
        """Return the factor of a page's importance: the product over the plug-ins."""
        product = 1.0
        for hook in self.weighers:
            if hook.plugin.disabled:
                continue
            found = hook.call(url, url, self.site)
            if found is None or found is FAILED:
                continue
            if not _is_factor(found):
                hook.reject(url, f"returned {found!r:.60}, not a number above 0")
                continue
            product = min(max(product * float(found), 1.0 / MAX_FACTOR), MAX_FACTOR)
        return product

    def refusal(self, url: str, depth: int) -> PluginRefusal | None:
        """Return which plug-in refuses a URL, and why; None: none does."""
        for hook in self.admitters:
            if hook.plugin.disabled:
                continue
            found = hook.call(url, url, self.site, depth)
            if found is None or found is True or found is FAILED:
                continue
            if found is False:
                return PluginRefusal(hook.plugin.name)
            if isinstance(found, str) and 0 < len(found) <= MAX_REASON:
                return PluginRefusal(hook.plugin.name, found)
            reasons = f"a reason of 1 to {MAX_REASON} characters"
            hook.reject(url, f"returned {found!r:.60}, not None, True, False or {reasons}")
        return None

    def ordered(self, urls: Sequence[str]) -> Sequence[str]:
        """Return URLs in the order of their first visits."""
        for hook in self.orderers:
            if hook.plugin.disabled:
                continue
            found = hook.call(self.site, tuple(urls), self.site)
            if found is None or found is FAILED:
                continue
            if not (isinstance(found, list | tuple) and _is_order_of(found, urls)):
                hook.reject(self.site, "returned other URLs than it was given")
                continue
            urls = found
        return urls


def queue_stage(
    site: str, weighers: Sequence[Hook], admitters: Sequence[Hook], orderers: Sequence[Hook]
) -> QueueStage | None:
    """Return the stage of a site; None: no plug-in is asked about it."""
    own = [
        tuple(hook for hook in hooks if hook.plugin.serves(site))
        for hooks in (weighers, admitters, orderers)
    ]
    return QueueStage(site, *own) if any(own) else None


def _is_factor(found: object) -> bool:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    return math.isfinite(found) and found > 0


def _is_order_of(found: Sequence[object], urls: Sequence[str]) -> bool:
    if len(found) != len(urls) or not all(isinstance(each, str) for each in found):
        return False
    return set(found) == set(urls)


def found_urls(hook: Hook, site: str) -> list[str]:
    """Return the URLs that a plug-in adds to a site, at most `MAX_FOUND`; on a thread."""

    def listed() -> list[object]:
        found = hook.implementation(site)
        if found is None:
            return []
        if isinstance(found, str) or not isinstance(found, Iterable):
            raise TypeError(f"returned {type(found).__name__}, not URLs")
        return list(islice(found, MAX_FOUND))

    # A generator runs only now: its failures count, too.
    answer = hook.run(site, listed)
    if answer is FAILED:
        return []
    urls = [each for each in answer if isinstance(each, str) and len(each) <= MAX_URL]
    if len(urls) < len(answer):
        hook.reject(site, "returned values that are no URLs")
    return urls
