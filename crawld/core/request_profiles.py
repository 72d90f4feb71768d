"""Which request makes a host answer with the wanted form of a page: a bandit over profiles.

A *profile* is a way to ask for a page; the *wanted form* says what its answer must be. The
profile in use on a section of a host stays as long as its answers are wanted. After an unwanted
answer the others are tried on the same page, drawn by Thompson sampling: each has a Beta
distribution of how likely its answer is wanted, from its own answers there and, as a prior, from
other sections of the host and other hosts of the site. An unwanted answer takes most of the weight
of earlier ones away, so that a host that changes its mind is found at its next visit.

A trial is a request more than visits need, so it takes a token of its host: a host begins with one
for each profile but the first, gets as many again once one is found that works, so that a change of
mind can be followed, and earns `TRIAL_SHARE` of a token with each visit.

Source: Thompson (1933); Russo et al. (2018), A Tutorial on Thompson Sampling, section 3.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

TRIAL_SHARE: Final = 0.02
"""Tokens that a visit earns: the share of requests that may be trials, after the first search."""

SEARCHES: Final = 2
"""Searches through all profiles for which a host has tokens at most."""

MEMORY: Final = 0.9
"""Weight that earlier answers of a profile keep with each further one: about ten count."""

FORGET: Final = 0.25
"""Weight that wanted answers of a profile keep after an unwanted one."""

HOST_PRIOR: Final = 3.0
"""Most answers that other sections of a host count for."""

SITE_PRIOR: Final = 1.5
"""Most answers that other hosts of a site count for."""

REFUSED: Final = frozenset({400, 401, 403, 406, 415})
"""Statuses by which a server may refuse one form of a request, and not another."""

WALL_PAGES: Final = 3
"""Pages in a row, at least, that a wall of a host shows itself to."""

WALL_MAX_DELAY_S: Final = 300.0
"""Delay of a host up to which a wall makes it back off: it is seen when the wall passes."""

GOOD_HOST_RETRY_MAX_S: Final = 6 * 3_600.0
"""Longest wait of a page in an unwanted form while other pages of its host are in the wanted."""

REFUSED_ROUNDS: Final = 2
"""How often each profile is refused before a page without a copy counts as forbidden."""

RETEST_VISITS: Final = 200
"""Visits of a section after which another profile is tried, although the one in use works."""


@dataclass(frozen=True, slots=True)
class RequestProfile:
    """A way to ask for pages.

    Attributes:
        headers: name and value of its request headers.
        agent_suffix: words added to the User-Agent, which names crawld and the contact.
        conditional: whether requests have conditions (If-None-Match, If-Modified-Since).
        http2: whether HTTP/2 is offered to https hosts; None: as to all of them.
        first_bytes: ask for these first bytes of the body only; None: the whole.
    """

    name: str
    headers: tuple[tuple[str, str], ...] = ()
    agent_suffix: str = ""
    conditional: bool = True
    http2: bool | None = None
    first_bytes: int | None = None

    def differs_in(self, other: RequestProfile) -> frozenset[str]:
        """Return the lower-case names of the request headers that differ from another profile.

        The version of HTTP, which is no header, counts as `:protocol`.
        """
        one, two = self._asked, other._asked
        return frozenset(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))

    @property
    def _asked(self) -> dict[str, object]:
        asked: dict[str, object] = {name.lower(): value for name, value in self.headers}
        return asked | {
            "user-agent": self.agent_suffix,
            "range": self.first_bytes,
            ":protocol": self.http2,
        }


USUAL: Final = RequestProfile("")
"""The way that pages are asked for without a profile."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form of an answer, as its content shows it.

    Attributes:
        content_type: sniffed media type.
        language: ISO 639-1 code of the language its text is in; empty: unknown.
        text: visible text, where the wanted form asks for some.
    """

    content_type: str
    size_bytes: int
    language: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class WantedForm:
    """What an answer must be; what is empty does not matter.

    Attributes:
        content_types: media types, any of them.
        language: ISO 639-1 code.
        min_bytes, max_bytes: decoded size, inclusive.
        text: what the visible text contains.
    """

    content_types: tuple[str, ...] = ()
    language: str = ""
    min_bytes: int = 0
    max_bytes: int | None = None
    text: str = ""

    def shortcoming(self, form: AnswerForm) -> str | None:
        """Return in words why a form is not the wanted one; None: it is."""
        if self.content_types and form.content_type not in self.content_types:
            return f"type {form.content_type}"
        if form.size_bytes < self.min_bytes:
            return f"only {form.size_bytes} bytes"
        if self.max_bytes is not None and form.size_bytes > self.max_bytes:
            return f"{form.size_bytes} bytes"
        # A text too short to tell its language is no evidence against it.
        if self.language and form.language and form.language != self.language:
            return f"language {form.language}"
        if self.text and self.text not in form.text:
            return "without the wanted text"
        return None


@dataclass(slots=True)
class Answers:
    """Weighted counts of the answers to one profile on one section."""

    wanted: float = 0.0
    unwanted: float = 0.0

    def add(self, *, wanted: bool) -> None:
        """Count an answer; earlier ones fade."""
        self.wanted = MEMORY * self.wanted + wanted
        self.unwanted = MEMORY * self.unwanted + (not wanted)
        if not wanted:
            self.wanted *= FORGET


@dataclass(slots=True)
class SectionChoice:
    """What was learnt on one section of a host.

    Attributes:
        answers: of each profile, in the order of the profiles.
        in_use: number of the profile in use; None: none is known to work.
        visits: since the last re-test.
    """

    answers: list[Answers]
    in_use: int | None = None
    visits: int = 0

    @classmethod
    def new(cls, profiles: int) -> SectionChoice:
        """Return the choice of a section without evidence."""
        return cls([Answers() for _ in range(profiles)])

    @property
    def was_wanted(self) -> bool:
        """Whether an answer was in the wanted form, and not long ago."""
        return any(each.wanted > 0.01 for each in self.answers)


@dataclass(slots=True)
class UnwantedRun:
    """The unwanted answers of a host since its last wanted one.

    Attributes:
        pages: some numbers of pages that had one.
        profiles: numbers of the profiles that had one.
    """

    pages: set[int] = field(default_factory=set)
    profiles: set[int] = field(default_factory=set)

    def add(self, page_id: int, profile: int) -> None:
        """Count an unwanted answer."""
        self.profiles.add(profile)
        if len(self.pages) < WALL_PAGES:
            self.pages.add(page_id)

    def end(self) -> None:
        """Note a wanted answer."""
        self.pages.clear()
        self.profiles.clear()

    def is_wall(self, profiles: int) -> bool:
        """Whether neither the page nor its profile explains the answers: the host has a wall."""
        return len(self.pages) >= WALL_PAGES and len(self.profiles) >= profiles


@dataclass(slots=True)
class PageSearch:
    """The search for the profile that brings the wanted form of one page.

    Attributes:
        tried: numbers of profiles; the last one is to be tried.
        at_once: whether it is tried at once, for a token; False: by the next visit of the page.
        again: whether the next visit asks first as the section does by then: its answers to other
            pages say that what this page got may have passed.
    """

    tried: list[int]
    at_once: bool = False
    again: bool = True

    def number(self, in_use: int | None) -> int:
        """Return the profile to ask with, where the section uses `in_use`."""
        if not self.at_once and self.again and in_use is not None:
            return in_use
        return self.tried[-1]

    def asked(self, number: int) -> list[int]:
        """Return the profiles tried, after an answer to one of them; that one is the last."""
        return [*(each for each in self.tried[:-1] if each != number), number]


@dataclass(slots=True)
class HostBudget:
    """The trials that a host may still take.

    Attributes:
        tokens: trials left.
        trials: made so far: requests that visits did not need.
        found: whether a profile that works was ever found.
    """

    profiles: int
    tokens: float = field(default=0.0)
    visits: int = 0
    trials: int = 0
    found: bool = False

    @classmethod
    def new(cls, profiles: int) -> HostBudget:
        """Return the budget of a host that was never asked."""
        return cls(profiles, tokens=float(profiles - 1))

    def find(self) -> None:
        """Note that a profile works: the first time it pays for another search."""
        if not self.found:
            self.found = True
            self.tokens = min(self.tokens + self.profiles - 1, _most_tokens(self.profiles))

    def earn(self) -> None:
        """Count a visit."""
        self.visits += 1
        self.tokens = min(self.tokens + TRIAL_SHARE, _most_tokens(self.profiles))

    def take(self) -> bool:
        """Take a token for a trial; False: there is none."""
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        self.trials += 1
        return True

    @property
    def is_full(self) -> bool:
        """Whether a re-test takes nothing that a search may need."""
        return self.tokens >= _most_tokens(self.profiles)


def _most_tokens(profiles: int) -> float:
    return float(SEARCHES * (profiles - 1))


@dataclass(frozen=True, slots=True)
class Prior:
    """How often each profile is in use elsewhere: on other sections of the host, on other hosts."""

    on_host: tuple[int, ...]
    on_site: tuple[int, ...]

    @classmethod
    def of(
        cls, profiles: int, on_host: Iterable[SectionChoice], on_site: Iterable[SectionChoice]
    ) -> Prior:
        """Count the profiles in use on sections."""
        return cls(_uses(profiles, on_host), _uses(profiles, on_site))

    def weights(self) -> list[float]:
        """Return how many wanted answers the prior counts for, for each profile."""
        host, site = _shares(self.on_host, HOST_PRIOR), _shares(self.on_site, SITE_PRIOR)
        return [one + other for one, other in zip(host, site, strict=True)]


def _uses(profiles: int, choices: Iterable[SectionChoice]) -> tuple[int, ...]:
    counts = [0] * profiles
    for choice in choices:
        if choice.in_use is not None:
            counts[choice.in_use] += 1
    return tuple(counts)


def _shares(counts: Sequence[int], most: float) -> list[float]:
    total = sum(counts)
    return [min(total, most) * count / total if total else 0.0 for count in counts]


def usual_profile(choice: SectionChoice, prior: Prior) -> int:
    """Return the number of the profile that a visit uses: the one in use, else the likeliest."""
    if choice.in_use is not None:
        return choice.in_use
    return likeliest(choice.answers, prior.weights())


def likeliest(answers: Sequence[Answers], weights: Sequence[float] | None = None) -> int:
    """Return the number of the way to ask whose next answer is most likely wanted; first of equals.

    Args:
        answers: of each way.
        weights: wanted answers that a prior counts for, for each; None: no prior.
    """
    means = [
        (1.0 + each.wanted + weight) / (2.0 + each.wanted + weight + each.unwanted)
        for each, weight in zip(answers, weights or [0.0] * len(answers), strict=True)
    ]
    return means.index(max(means))


def trial_profile(
    choice: SectionChoice,
    prior: Prior,
    profiles: Sequence[RequestProfile],
    tried: Sequence[int],
    vary: str | None,
    rng: random.Random,
) -> int | None:
    """Draw the profile to try next on a page; None: all were tried.

    Args:
        tried: numbers of the profiles tried on the page, the last one last.
        vary: the Vary field of the last answer. A profile that differs from the last only in
            headers which the server says not to read comes after all others.
    """
    left = [number for number in range(len(profiles)) if number not in tried]
    if not left:
        return None
    weights = prior.weights()

    def draw(number: int) -> tuple[bool, float]:
        answers = choice.answers[number]
        score = rng.betavariate(1.0 + answers.wanted + weights[number], 1.0 + answers.unwanted)
        return _may_differ(vary, profiles[tried[-1]], profiles[number]), score

    drawn = {number: draw(number) for number in left}
    return max(left, key=drawn.__getitem__)


def _may_differ(vary: str | None, one: RequestProfile, other: RequestProfile) -> bool:
    """Whether a server may answer two profiles differently, by its own word; True without one."""
    if vary is None:
        return True
    named = {each.strip().lower() for each in vary.split(",")}
    return "*" in named or bool(named & one.differs_in(other))


def wants_retest(choice: SectionChoice, budget: HostBudget) -> bool:
    """Whether another profile is to be tried although the one in use works."""
    return choice.in_use is not None and choice.visits >= RETEST_VISITS and budget.is_full
