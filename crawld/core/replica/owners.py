"""Decides from names who owns a host, and which of an owner's names is the one to keep.

Two hosts have one owner if only the owner of one can have made the name of the other. Hosts under
one registrable domain usually have; but a domain that gives names to anybody may be missing in the
public suffix list. There, and under a top-level domain that the list does not know, only names that
differ by service labels (`www`, `web2`, `staging`) count. An IP address belongs to nobody.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from crawld.core.url import is_listed_suffix, registrable_domain


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CROWDED: Final = 12
"""A registrable domain with more names than this, service labels removed, gives names to anybody.
"""

_SERVICE: Final = re.compile(
    r"(?:www|web|srv|server|cache|node|mirror|host|ns|lb|static|cdn)-?\d{0,3}", re.ASCII
)
"""Labels of names that serve one site together."""

_SIDE: Final = _words(
    "m mobile amp staging stage stg dev devel test testing qa uat preprod beta alpha preview demo"
    " sandbox old new backup bak origin legacy"
)
"""Labels of another version of one site, which is not the one to keep."""

_LANGUAGES: Final = _words(
    "ar bg bn ca cs cy da de el en eo es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka kk ko"
    " lt lv mk ms nb nl nn no pl pt ro ru sk sl sq sr sv sw ta te th tr uk ur vi zh"
)
_STEMS: Final = _words("www web srv server cache node mirror host ns lb static cdn")
_VERSION_WORDS: Final = _words("latest stable next legacy lts nightly master main")
_TOKENS: Final = re.compile(r"v?[0-9]+|[a-z]+|[^0-9a-z]", re.ASCII)


def without_port(name: str) -> str:
    """Return a host name without its port.

    >>> without_port("a.example:8080"), without_port("::1"), without_port("[::1]:8080")
    ('a.example', '::1', '::1')
    """
    host, colon, port = name.rpartition(":")
    if host.startswith("["):
        return host[1:-1]
    return host if colon and port.isdigit() and ":" not in host else name


def is_address(name: str) -> bool:
    """Whether a host is named by an IP address."""
    host = without_port(name)
    return ":" in host or host.replace(".", "").isdigit()


@lru_cache(maxsize=65_536)
def site_name(name: str) -> str:
    """Return the name without the labels that its owner puts before it for another server.

    >>> site_name("www2.staging.a.example"), site_name("blog.a.example")
    ('a.example', 'blog.a.example')
    """
    host = without_port(name)
    if is_address(host):
        return host
    domain = registrable_domain(host)
    while host != domain and _is_service(label := host.partition(".")[0]):
        host = host[len(label) + 1 :]
    return host


def owner_of(name: str, crowded: Collection[str] = ()) -> str:
    """Return who owns a host; hosts with equal results have one owner.

    Args:
        crowded: registrable domains that give names to anybody (`crowded_domains`).

    >>> owner_of("www.a.com"), owner_of("b.a.com"), owner_of("b.a.com", {"a.com"})
    ('a.com', 'a.com', 'b.a.com')
    """
    if is_address(name):
        return name
    domain = registrable_domain(without_port(name))
    if domain in crowded or not is_listed_suffix(domain):
        return site_name(name)
    return domain


def crowded_domains(names: Iterable[str]) -> frozenset[str]:
    """Return the registrable domains with so many names that anybody may have one."""
    sites = {site_name(name) for name in names if not is_address(name)}
    counts = Counter(registrable_domain(site) for site in sites)
    return frozenset(domain for domain, count in counts.items() if count > CROWDED)


def is_site_of_domain(name: str, other: str) -> bool:
    """Whether a host is the site of the registrable domain of another, whose name it gave.

    Not the service labels but `www`: on a platform, a user may have one as a name.

    >>> is_site_of_domain("www.a.com", "b.a.com"), is_site_of_domain("web2.a.com", "b.a.com")
    (True, False)
    """
    if is_address(other):
        return False
    domain = registrable_domain(without_port(other))
    return name.removeprefix("www.") == domain and is_listed_suffix(domain)


def inlink_domains(sources: Iterable[str], but: Iterable[str]) -> int:
    """Return how many registrable domains link to a host, without those of some names.

    One owner can make any number of names, but each registrable domain costs money.
    """
    found = {registrable_domain(without_port(name)) for name in sources if not is_address(name)}
    return len(found - {registrable_domain(without_port(name)) for name in but})


@lru_cache(maxsize=65_536)
def is_side_name(name: str) -> bool:
    """Whether a name says that the host is not the one for the public: staging, port, address."""
    host = without_port(name)
    if host != name or is_address(host):
        return True
    above = host.removesuffix(registrable_domain(host))
    return any(label in _SIDE for part in above.split(".") for label in part.split("-"))


def differ_by_www(one: str, other: str) -> bool:
    """Whether two names differ by a leading "www." only."""
    return one != other and one.removeprefix("www.") == other.removeprefix("www.")


def name_one_machine(one: str, other: str) -> bool:
    """Whether two names at one address lead to one machine and its files.

    They differ by a leading "www.", or by the port, or one of them is the address.

    >>> name_one_machine("www.a.com", "a.com"), name_one_machine("mirror.a.com", "a.com")
    (True, False)
    """
    hosts = without_port(one), without_port(other)
    return hosts[0] == hosts[1] or differ_by_www(*hosts) or any(map(is_address, hosts))


def are_editions(one: str, other: str) -> bool:
    """Whether two names say that the hosts are versions or languages of one thing.

    Their texts may be equal for the most part, but they are not meant to be one site.

    >>> are_editions("v1.docs.a.com", "v2.docs.a.com"), are_editions("web1.a.com", "web2.a.com")
    (True, False)
    >>> are_editions("en.a.com", "de.a.com"), are_editions("www.a.com", "a.com")
    (True, False)
    """
    names = without_port(one), without_port(other)
    if names[0] == names[1] or any(is_address(name) for name in names):
        return False
    tokens = [_TOKENS.findall(name) for name in names]
    if len(tokens[0]) != len(tokens[1]):
        return False
    found = False
    for at, pair in enumerate(zip(*tokens, strict=True)):
        if pair[0] == pair[1]:
            continue
        numbered = all(_is_number(token) for token in pair)
        if numbered and at and tokens[0][_stem_at(tokens[0], at)] in _STEMS:
            continue
        spoken = all(token in _LANGUAGES for token in pair)
        named = all(token in _VERSION_WORDS or _is_number(token) for token in pair)
        if not (numbered or spoken or named):
            return False
        found = True
    return found


def _is_number(token: str) -> bool:
    return token.removeprefix("v").isdigit()


def _stem_at(tokens: list[str], at: int) -> int:
    """Return the index of the word before a number, over one hyphen."""
    return at - 2 if tokens[at - 1] == "-" and at > 1 else at - 1


def _is_service(label: str) -> bool:
    return label in _SIDE or _SERVICE.fullmatch(label) is not None
