"""The response stage: ask plug-ins what a page that was received means, and join their verdicts.

A field that two plug-ins decide has the value of the first, and the other is told of
(`Plugin.overruled`); any plug-in may veto the copy. A verdict with a mistake is dropped as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from crawld.plugin_host.plugin import FAILED, QUICK_S, Hook
from crawld.plugins import PreviousCopy, Reading, Verdict

MAX_TAGS: Final = 16
MAX_TAG_NAME: Final = 64
MAX_TAG_VALUE: Final = 1_000
MAX_DIGEST_BYTES: Final = 64
MAX_WHY: Final = 200
MAX_LINK: Final = 8_000

DIGEST_TAG: Final = "digest"
"""The tag in which a plug-in's digest is kept, in hexadecimal digits."""

KNOWN_CALLS: Final = 3
"""Calls after which the time of a hook is known."""

Tags = Mapping[str, Mapping[str, str]]
"""Tags of a copy by plug-in."""


@dataclass(frozen=True, slots=True)
class JoinedVerdict:
    """What all plug-ins decide about a page.

    Attributes:
        changed: None: as crawld found.
        links: None: those of the page.
        veto: why the answer is not stored; empty: it is.
        why: why it counts as changed or unchanged.
        tags: (plug-in, name, value) to keep with the copy.
    """

    changed: bool | None = None
    links: tuple[str, ...] | None = None
    veto: str = ""
    why: str = ""
    tags: tuple[tuple[str, str, str], ...] = ()


NO_VERDICT: Final = JoinedVerdict()


@dataclass(slots=True)
class _Join:
    """The verdict so far."""

    changed: bool | None = None
    links: tuple[str, ...] | None = None
    veto: str = ""
    why: str = ""
    tags: list[tuple[str, str, str]] = field(default_factory=list)


class ResponseStage:
    """Asks the plug-ins about each page that was received."""

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self._hooks = tuple(hooks)

    def serving(self, site: str) -> tuple[Hook, ...]:
        """Return the hooks that are asked about pages of a site."""
        return tuple(hook for hook in self._hooks if hook.plugin.serves(site))

    @staticmethod
    def is_quick(hook: Hook) -> bool:
        """Whether the next call of a hook is expected to be short."""
        return hook.calls >= KNOWN_CALLS and hook.level_s <= QUICK_S

    @staticmethod
    def ask(hook: Hook, reading: Reading, kept: Tags) -> object:
        """Return the answer of one plug-in, who sees its own tags only; on any thread."""
        if reading.previous is not None:
            tags = dict(kept.get(hook.plugin.name, {}))
            tags.pop(DIGEST_TAG, None)
            previous = PreviousCopy(reading.previous.body, reading.previous.content_type, tags)
            reading = replace(reading, previous=previous)
        return hook.call(reading.page.url, reading)

    @staticmethod
    def joined(
        answers: Sequence[tuple[Hook, object]], reading: Reading, kept: Tags
    ) -> JoinedVerdict:
        """Join answers, in the order of the plug-ins."""
        join = _Join()
        for hook, answer in answers:
            if answer is None or answer is FAILED:
                continue
            why = _fault(answer)
            if why is not None:
                hook.reject(reading.page.url, why)
                continue
            assert isinstance(answer, Verdict)
            _add(join, hook, answer, reading, kept)
        return JoinedVerdict(join.changed, join.links, join.veto, join.why, tuple(join.tags))


def _add(join: _Join, hook: Hook, verdict: Verdict, reading: Reading, kept: Tags) -> None:
    plugin = hook.plugin
    changed = _decided(verdict, reading, kept.get(plugin.name, {}))
    if changed is not None and join.changed is None:
        join.changed = changed
        join.why = f"plug-in {plugin.name}: {verdict.why or _default_why(changed)}"
    elif changed is not None and changed is not join.changed:
        plugin.overruled += 1
    if verdict.links is not None:
        if join.links is None:
            join.links = tuple(verdict.links)
        elif tuple(verdict.links) != join.links:
            plugin.overruled += 1
    if not verdict.store and not join.veto:
        join.veto = f"plug-in {plugin.name}: {verdict.why or 'not to be stored'}"
    join.tags += [(plugin.name, name, value) for name, value in verdict.tags.items()]
    if verdict.digest is not None:
        join.tags.append((plugin.name, DIGEST_TAG, verdict.digest.hex()))


def _default_why(changed: bool) -> str:
    return "it changed" if changed else "nothing that matters changed"


def _decided(verdict: Verdict, reading: Reading, kept: Mapping[str, str]) -> bool | None:
    """Return whether the page changed by a verdict; None: it does not say."""
    if reading.previous is None:
        return None
    if verdict.changed is not None:
        return verdict.changed
    held = kept.get(DIGEST_TAG)
    if verdict.digest is None or held is None:
        return None
    return verdict.digest.hex() != held


def _fault(answer: object) -> str | None:
    """Return what is wrong with an answer; None: nothing is."""
    if not isinstance(answer, Verdict):
        return f"returned {type(answer).__name__}, not a Verdict"
    if answer.changed not in (None, True, False) or not isinstance(answer.store, bool):
        return "changed and store must be true or false"
    if (fault := _fault_of_digest(answer.digest)) is not None:
        return fault
    if not (isinstance(answer.why, str) and len(answer.why) <= MAX_WHY):
        return f"why must be text of at most {MAX_WHY} characters"
    return _fault_of_links(answer.links) or _fault_of_tags(answer.tags)


def _fault_of_digest(digest: object) -> str | None:
    hint = "use hashlib.blake2b(data, digest_size=16).digest()"
    if digest is None:
        return None
    if not isinstance(digest, bytes):
        return f"digest is {type(digest).__name__}, not bytes: {hint}"
    if not 0 < len(digest) <= MAX_DIGEST_BYTES:
        return f"digest has {len(digest)} bytes, not 1 to {MAX_DIGEST_BYTES}: {hint}"
    return None


def _fault_of_links(links: object) -> str | None:
    if links is None:
        return None
    if not isinstance(links, list | tuple):
        return "links must be a list of URLs"
    if not all(isinstance(each, str) and len(each) <= MAX_LINK for each in links):
        return "links must be a list of URLs"
    return None


def _fault_of_tags(tags: object) -> str | None:
    if not isinstance(tags, Mapping) or len(tags) > MAX_TAGS:
        return f"tags must be a table of at most {MAX_TAGS} texts"
    for name, value in tags.items():
        if not (isinstance(name, str) and 0 < len(name) <= MAX_TAG_NAME and name != DIGEST_TAG):
            return f"{name!r:.80} is no name of a tag"
        if not (isinstance(value, str) and len(value) <= MAX_TAG_VALUE and _is_text(value)):
            return f"the tag {name} is no text of at most {MAX_TAG_VALUE} characters"
        if not _is_text(name):
            return "a name of a tag contains half a character"
    return None


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
