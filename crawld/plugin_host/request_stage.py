"""The request stage: let plug-ins change a request, within what they may.

Each plug-in gets the request as those before it made it, so the last word is the last one's; an
earlier one whose change it undoes is told of (`Plugin.overruled`).

What a plug-in must not do is not undone but refused: its whole change is dropped, and counts as a
failure. Whether another URL may be asked for is decided by the caller, who knows scope and robots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from crawld.core.request_profiles import REFUSED, Answers, likeliest
from crawld.plugin_host.plugin import FAILED, Hook, Plugin
from crawld.plugins import KnownPage, PageRequest

MAX_HEADERS: Final = 20
MAX_VALUE: Final = 1_000
"""Characters of a header value that a plug-in may set."""

MAX_VARIANTS: Final = 16
MAX_SUFFIX: Final = 100
MAX_VARIANT_NAME: Final = 40

OWN_HEADERS: Final = frozenset(
    {
        *("host", "user-agent", "from", "connection", "keep-alive", "te", "trailer", "upgrade"),
        *("transfer-encoding", "content-length", "content-type", "expect", "accept-encoding"),
        *("if-match", "if-none-match", "if-modified-since", "if-unmodified-since"),
        *("range", "if-range", "proxy-authorization", "proxy-connection", "cookie"),
    }
)
"""Headers that crawld sets, or never sends; a plug-in cannot set them."""

_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
_SUFFIX_REFUSED: Final = frozenset('()<>@"\\\r\n')
"""Characters by which a suffix could look like another contact, or end the line."""

MAX_HOSTS: Final = 10_000
"""Hosts of which the variant in use is remembered."""

NO_ANSWERS: Final = Answers()

MayAsk = Callable[[KnownPage, str], str | None]
"""Returns why another URL may not be asked for in place of a page's own; None: it may."""


@dataclass(slots=True)
class VariantChoice:
    """Which of several variants of a request a host gets: the one it most likely does not refuse.

    Its answers are counted as those to request profiles are (`core/request_profiles.py`), by host
    and variant.
    """

    _answers: dict[str, dict[str, Answers]] = field(default_factory=dict)

    def choose(self, host: str, variants: Sequence[PageRequest]) -> PageRequest:
        """Return the variant for the next request to a host."""
        known = self._answers.get(host)
        if known is None:
            return variants[0]
        return variants[likeliest([known.get(each.variant, NO_ANSWERS) for each in variants])]

    def judge(self, host: str, variant: str, status: int) -> None:
        """Learn from the answer to a variant."""
        refused = status in REFUSED
        if host not in self._answers:
            if not refused:
                return  # of equals the first is chosen anyway
            if len(self._answers) >= MAX_HOSTS:
                self._answers.clear()
            self._answers[host] = {}
        self._answers[host].setdefault(variant, Answers()).add(wanted=not refused)


class RequestStage:
    """Asks the plug-ins about each request.

    Args:
        may_ask: decides whether another URL may be asked for.
    """

    def __init__(self, hooks: Sequence[Hook], may_ask: MayAsk) -> None:
        self._hooks = tuple(hooks)
        self._may_ask = may_ask
        self._choices = {hook.plugin.name: VariantChoice() for hook in hooks}
        self._varied: dict[str, VariantChoice] = {}

    def shape(self, page: KnownPage) -> PageRequest | None:
        """Return the request for a page as the plug-ins want it; None: as usual."""
        first = request = PageRequest(page.url)
        changed_by: Plugin | None = None
        for hook in self._hooks:
            if not hook.plugin.serves(page.site):
                continue
            answer = hook.call(page.url, page, request)
            if answer is None or answer is FAILED:
                continue
            before, request = request, self._accepted(hook, page, request, answer)
            if changed_by is not None and _undoes(before, request):
                changed_by.overruled += 1
            if request is not before:
                changed_by = hook.plugin
        return None if request is first else request

    def judge(self, request: PageRequest, host: str, status: int | None) -> None:
        """Learn which variant a host refuses."""
        choice = self._varied.get(host)
        if choice is not None and request.variant and status is not None:
            choice.judge(host, request.variant, status)

    def _accepted(
        self, hook: Hook, page: KnownPage, before: PageRequest, answer: object
    ) -> PageRequest:
        variants = answer if isinstance(answer, list | tuple) else (answer,)
        if not 0 < len(variants) <= MAX_VARIANTS:
            hook.reject(page.url, f"returned {len(variants)} requests, not 1 to {MAX_VARIANTS}")
            return before
        for each in variants:
            why = _fault(each) or self._fault_of_url(page, each, before)
            if why:
                hook.reject(page.url, why)
                return before
        if len(variants) == 1:
            chosen: PageRequest = variants[0]
            return chosen
        choice = self._choices[hook.plugin.name]
        if len(self._varied) >= MAX_HOSTS:
            self._varied.clear()
        self._varied[page.host] = choice
        return choice.choose(page.host, variants)

    def _fault_of_url(
        self, page: KnownPage, request: PageRequest, before: PageRequest
    ) -> str | None:
        if request.url == before.url:
            return None
        why = self._may_ask(page, request.url)
        return None if why is None else f"asked for {request.url[:200]}: {why}"


def _undoes(before: PageRequest, after: PageRequest) -> bool:
    """Whether a request lacks, or has differently, what one before it had."""
    headers = {name.lower(): value for name, value in after.headers}
    kept = all(headers.get(name.lower()) == value for name, value in before.headers)
    return not kept or after.url != before.url or after.agent_suffix != before.agent_suffix


def _fault(request: object) -> str | None:
    """Return what is wrong with an answer; None: nothing is."""
    if not isinstance(request, PageRequest):
        return f"returned {type(request).__name__}, not a PageRequest"
    if not (isinstance(request.url, str) and isinstance(request.conditional, bool)):
        return "returned a PageRequest with a wrong type in url or conditional"
    suffix, variant = request.agent_suffix, request.variant
    if not (isinstance(suffix, str) and len(suffix) <= MAX_SUFFIX and suffix.isascii()):
        return f"agent_suffix must be ASCII text of at most {MAX_SUFFIX} characters"
    if _SUFFIX_REFUSED.intersection(suffix) or not suffix.isprintable():
        return "agent_suffix has a character that could change the robot's contact"
    if not (isinstance(variant, str) and len(variant) <= MAX_VARIANT_NAME):
        return f"variant must be text of at most {MAX_VARIANT_NAME} characters"
    return _fault_of_headers(request.headers)


def _fault_of_headers(headers: object) -> str | None:
    if not isinstance(headers, tuple | list) or len(headers) > MAX_HEADERS:
        return f"headers must be at most {MAX_HEADERS} pairs of name and value"
    for pair in headers:
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            return "headers must be pairs of name and value"
        name, value = pair
        if not (isinstance(name, str) and name and _TOKEN.issuperset(name.lower())):
            return f"{name!r:.60} is no name of a header"
        if name.lower() in OWN_HEADERS:
            return f"set {name}, which only crawld sets"
        if not (isinstance(value, str) and len(value) <= MAX_VALUE and _is_line(value)):
            return f"the value of {name} is no single line of Latin-1 text"
    return None


def _is_line(value: str) -> bool:
    return all(each == "\t" or (" " <= each <= "\xff" and each != "\x7f") for each in value)
