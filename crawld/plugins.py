"""The plug-in interface: what a plug-in may implement, and the values that it gets and returns.

A plug-in is a Python file in the directory `[daemon] plugins_dir`, or an installed package with an
entry point of the group `crawld.plugins`. It is used if the config has a `[[plugin]]` block of its
name. It states the version of this interface, and marks functions of the names below:

    from crawld.plugins import hookimpl

    CRAWLD_API = 1

    @hookimpl
    def weigh_page(url: str) -> float | None:
        return 10.0 if "/news/" in url else None

    stage      hooks                                              runs
    request    prepare_request                                    on the event loop
    response   read_response                                      off the loop, unless it is quick
    queue      weigh_page, admit_page, order_new_pages            on the event loop
               find_pages                                         off the loop, every ten minutes
    parts      policies, estimators, differences, exporters,      where its name is used
               notifiers, hint_finders

Rule 1: a hook may leave out arguments that it does not use. It returns None if it has no opinion.
Rule 2: scope, robots.txt, politeness, budgets, the address fence, quarantine and purge decide last.
No answer of a plug-in sends a request sooner, elsewhere, or without the robot's name and contact.
Rule 3: an exception, an answer that is not as described, or a call that takes too long counts as a
failure; it is logged, and the crawl goes on as without the plug-in. After `max_failures` the
plug-in is disabled until the next start.
Rule 4: plug-ins are asked in the order of their `[[plugin]]` blocks. Of two that decide the same
thing about a page, the first wins. A request goes through all of them: each gets it as those before
it made it.

A change that breaks plug-ins increases `API`; one that only adds hooks or fields does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pluggy

from crawld.core.change.model import PageModel
from crawld.core.revisit.policies import OrderedPolicy, Policy, VisitObservation

__all__ = [
    "API",
    "Difference",
    "Estimator",
    "ExportedPage",
    "Exporter",
    "KnownPage",
    "Message",
    "MessageEvent",
    "Notifier",
    "OrderedPolicy",
    "PageModel",
    "PageRequest",
    "Policy",
    "PolicyFactory",
    "PreviousCopy",
    "Reading",
    "Verdict",
    "VisitObservation",
    "hookimpl",
    "hookspec",
]

API: Final = 1
"""Version of this interface; a plug-in states the one it was written for as `CRAWLD_API`."""

NAME: Final = "crawld"

hookspec = pluggy.HookspecMarker(NAME)
hookimpl = pluggy.HookimplMarker(NAME)
"""Marks a function of a plug-in as an implementation of the hook of its name."""


# --- values --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page before a visit.

    Attributes:
        url: canonical URL.
        site: name of its site in the config.
        host: host name.
        depth: links from a seed.
        importance: weight of its freshness; 1 is usual.
        visits: visits so far.
        last_visit_at: Unix seconds; None: never.
        last_change_at: time of the visit that stored the copy held, Unix seconds; None: no copy.
        title: of the copy held.
    """

    url: str
    site: str
    host: str
    depth: int = 0
    importance: float = 1.0
    visits: int = 0
    last_visit_at: float | None = None
    last_change_at: float | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page, before it is sent.

    Attributes:
        url: what is asked for; on the same origin as the page, in scope, allowed by robots.txt.
        headers: further headers. Those that crawld sets (Host, User-Agent, conditions, ranges,
            encodings, connection) and those of the operator's `headers_file` cannot be set.
        conditional: whether the server may answer that the copy held is still valid (304).
        agent_suffix: text added to the User-Agent, after crawld's name and contact.
        variant: short name of this form of the request, for statistics and logs.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    conditional: bool = True
    agent_suffix: str = ""
    variant: str = ""

    def with_header(self, name: str, value: str) -> PageRequest:
        """Return the request with one more header, in place of one of the same name."""
        others = tuple(each for each in self.headers if each[0].lower() != name.lower())
        return replace(self, headers=(*others, (name, value)))


@dataclass(frozen=True, slots=True)
class PreviousCopy:
    """The copy held of a page.

    Attributes:
        body: its bytes, decompressed.
        content_type: Content-Type with charset.
        tags: what this plug-in kept with it.
    """

    body: bytes = field(repr=False)
    content_type: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


class ReceivedText:
    """What a page and its bytes say as text; base of `Reading` and `ExportedPage`."""

    __slots__ = ()

    body: bytes
    charset: str | None
    read_text: Callable[[], str]

    @property
    def text(self) -> str:
        """The visible text of the page; computed at each use."""
        return self.read_text()

    @property
    def markup(self) -> str:
        """The body as text."""
        return self.body.decode(self.charset or "utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Reading(ReceivedText):
    """A page as it was just received; its body differs from the copy held.

    Attributes:
        headers: of the response, as received.
        body: decompressed.
        content_type: media type, as found in the body; `charset` of a text.
        title: of an HTML page.
        links: canonical URLs that may be followed.
        previous: the copy held; None at the first visit.
        changed: what crawld found, or an earlier plug-in decided.
        difference: weighted difference of the texts, [0, 1]; None: not compared.
        read_text: returns the visible text.
    """

    page: KnownPage
    body: bytes = field(repr=False)
    content_type: str = "text/html"
    charset: str | None = "utf-8"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    title: str | None = None
    links: Sequence[str] = ()
    previous: PreviousCopy | None = None
    changed: bool = True
    difference: float | None = None
    read_text: Callable[[], str] = field(default=str, repr=False)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a plug-in decides about a reading; each field may be left out.

    Attributes:
        changed: whether the page changed; counts only where there is a previous copy.
        digest: identity of what matters in the page, up to 64 bytes. It is kept with the copy;
            while it stays the same the page counts as unchanged.
        links: URLs to follow instead of `Reading.links`; relative ones are resolved.
        store: False: this answer is not stored, and the copy held stays.
        why: short reason for `changed` or `store`, for people.
        tags: short texts kept with the copy, if one is stored.
    """

    changed: bool | None = None
    digest: bytes | None = None
    links: Sequence[str] | None = None
    store: bool = True
    why: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExportedPage(ReceivedText):
    """A page of the mirror with the copy that readers see.

    Attributes:
        visited_at: when this copy was found first, Unix seconds.
        content_type: media type; `charset` of a text.
        tags: what plug-ins kept with the copy, by `PLUGIN.NAME`.
        read_text: returns the visible text.
    """

    url: str
    title: str | None
    visited_at: float
    content_type: str
    charset: str | None
    body: bytes = field(repr=False)
    tags: Mapping[str, str] = field(default_factory=dict)
    read_text: Callable[[], str] = field(default=str, repr=False)


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """An event of a notification: `kind` is new, changed, moved, gone or back; `at` Unix seconds.

    Attributes:
        words_added, words_removed: of a change, where it was compared.
    """

    urn: str
    kind: str
    at: float
    site: str
    url: str
    title: str | None = None
    target_url: str | None = None
    difference: float | None = None
    words_added: int | None = None
    words_removed: int | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A notification.

    Attributes:
        key: names the message, the same at each try.
        rule: name of the `[[notify]]` block.
        subject, text: the message for people.
        events: what it reports; a test reports nothing.
        target: text of the file `notifier_file` of the rule, without its line end.
    """

    key: str
    rule: str
    subject: str
    text: str
    events: tuple[MessageEvent, ...] = ()
    target: str = field(default="", repr=False)


PolicyFactory = Callable[[], Policy]
"""Makes an empty policy, for the pages of one site on one host."""

Estimator = Callable[[PageModel], float]
"""Returns the rate of change of a page, per second, from what its visits found."""

Difference = Callable[[str | bytes, str | bytes], float]
"""Returns how much two texts without noise differ, [0, 1]: 0 only if equal in what matters."""

Exporter = Callable[[Iterator[ExportedPage], Path], int]
"""Writes pages to a path, or gives them to another program; returns how many it took."""

Notifier = Callable[[Message], str]
"""Delivers a message; returns why it could not, empty if it could. Called on a thread."""


# --- hooks ---------------------------------------------------------------------------------------


@hookspec
def configure(options: Mapping[str, object]) -> None:
    """Take the options of the `[[plugin]]` block, once, before any other hook.

    An exception refuses the plug-in; its text is shown to the operator.
    """


@hookspec
def prepare_request(
    page: KnownPage, request: PageRequest
) -> PageRequest | Sequence[PageRequest] | None:
    """Change a request before it is sent.

    Returns:
        The request to send; or several with different `variant` in order of preference: crawld
        sends the first that the host does not refuse (status 400, 401, 403, 406 or 415).
    """


@hookspec
def read_response(reading: Reading) -> Verdict | None:
    """Look at a page that was received, and decide what it means.

    Called for a good answer (status 200 or 203) whose bytes differ from the copy held; not for
    images, styles and the like, nor for pages in quarantine.
    """


@hookspec
def weigh_page(url: str, site: str) -> float | None:
    """Return a factor for the importance of a page, > 0; 1 is usual.

    It must depend on its arguments and options alone: it is asked when a page is found, and for all
    pages after plug-ins or their options have changed.
    """


@hookspec
def admit_page(url: str, site: str, depth: int) -> bool | str | None:
    """Return False to refuse a URL that scope, traps and robots.txt admit, or the reason in words.

    The reason, up to 200 characters, is shown by `crawlctl why URL`. True does not admit what they
    refuse. The answer about a URL is remembered for some time.
    """


@hookspec
def order_new_pages(urls: Sequence[str], site: str) -> Sequence[str] | None:
    """Return the next never-visited pages of a host in the order of their visits; at most 256."""


@hookspec
def find_pages(site: str) -> Iterable[str] | None:
    """Return URLs that a site should have, at most 10,000; scope, traps and robots.txt decide."""


@hookspec
def policies() -> Mapping[str, PolicyFactory]:
    """Return policies by name: `policy = "PLUGIN:NAME"` in the config, `--policies` in the lab."""


@hookspec
def estimators() -> Mapping[str, Estimator]:
    """Return estimators of change rates by name: `[schedule] estimator = "PLUGIN:NAME"`."""


@hookspec
def differences() -> Mapping[str, Difference]:
    """Return measures of difference by name: `difference = "PLUGIN:NAME"` of a site."""


@hookspec
def exporters() -> Mapping[str, Exporter]:
    """Return export formats by name: `crawld export PLUGIN:NAME -c FILE --out PATH`."""


@hookspec
def notifiers() -> Mapping[str, Notifier]:
    """Return notifiers by name: `notifier = "PLUGIN:NAME"` of a `[[notify]]` block."""


@hookspec
def hint_finders(parts: object) -> Sequence[object]:
    """Return finders of hint sources, for parts of crawld itself: `parts` has no stable type."""
