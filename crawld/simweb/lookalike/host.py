"""One host of the web of look-alikes, and what is true about it."""

from __future__ import annotations

from dataclasses import dataclass

from crawld.simweb.lookalike.pages import Flags, SitePages

NO_GROUP = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoration:
    """What a host adds to each page that is not part of what the page says.

    Attributes:
        absolute_links: links name scheme and host.
        date: the page says when it was made.
        counter: the page counts its readers.
        path: the page names its own path.
    """

    absolute_links: bool = False
    date: bool = False
    counter: bool = False
    path: bool = False


PLAIN = Decoration()


@dataclass(frozen=True, slots=True, kw_only=True)
class LookalikeHost:
    """A host, what a crawler may know about it, and the truth.

    Attributes:
        number: its index in the web.
        name: host name or IP literal, with `:port` if it is not the usual one.
        address: IPv4 address.
        certificate: names on its certificate.
        https: whether it is fetched by https.
        first_seen_day: when a crawler met it; days since the start, most are negative.
        linked_from: names of hosts that link to it.
        pages: its pages.
        visited: which of them the crawler has visited on day 0.
        decoration: what it adds to each page.
        kind: what it is an example of.
        family: number of the group of hosts it was made with; equal for look-alikes and attackers.
        group: number of its group of true copies; `NO_GROUP`: none.
        original: whether it is the one of its group to keep; others may do as well (`keepable`).
        keepable: whether keeping it instead of the original harms nobody.
        owner: number of its owner.
        victim: number of the host that it attacks; -1: it attacks none.
    """

    number: int
    name: str
    address: str
    certificate: frozenset[str]
    https: bool
    first_seen_day: float
    linked_from: tuple[str, ...]
    pages: SitePages
    visited: Flags
    decoration: Decoration
    kind: str
    family: int
    group: int
    original: bool
    keepable: bool
    owner: int
    victim: int
