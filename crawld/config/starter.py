"""The first config of a site, as text: what one look at the site told, with comments.

`crawld init URL` writes it. Every line that is not a comment is valid as it stands; keys that the
operator has to choose are comments with an example from the site.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from crawld.config.command_line import default_site_name
from crawld.config.template import to_toml
from crawld.core.url import split_url, target_of

WIKIMEDIA_MEDIA = "upload.wikimedia.org"
"""The host of the media files of all Wikimedia wikis."""

WIKIMEDIA_FORMULAS = "wikimedia.org"
"""The host of their formulas, as images."""

WIKIMEDIA_STREAM = "https://stream.wikimedia.org/v2/stream/recentchange"
"""The event stream of all Wikimedia wikis."""

WIKIMEDIA_DOMAINS = (
    *("wikipedia.org", "wiktionary.org", "wikibooks.org", "wikinews.org", "wikiquote.org"),
    *("wikisource.org", "wikiversity.org", "wikivoyage.org", "wikidata.org", "wikimedia.org"),
    *("mediawiki.org", "wikifunctions.org"),
)

MAX_SITEMAPS_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiLook:
    """What a MediaWiki tells of itself.

    Attributes:
        name: name of the wiki.
        software: name and version.
        article_path: path of its pages, with `$1` for the title.
        special: name of the namespace of special pages.
        category: name of the namespace of categories.
    """

    name: str
    software: str
    article_path: str
    special: str
    category: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLook:
    """What one look at a site told.

    Attributes:
        url: canonical URL of the page, after redirects.
        title: title of the page.
        crawl_delay_s: Crawl-delay of its robots.txt, None without one.
        sitemaps: named in its robots.txt.
        media_hosts: further hosts that the page loads images and styles from.
        is_private: whether its host has a private or loopback address.
        wiki: None if it is no MediaWiki.
    """

    url: str
    title: str
    crawl_delay_s: float | None
    sitemaps: tuple[str, ...]
    media_hosts: tuple[str, ...]
    is_private: bool
    wiki: WikiLook | None


def starter_config(look: SiteLook, *, contact: str | None) -> str:
    """Return the text of a config for a site; without a contact the operator has to set one."""
    host = split_url(look.url).host
    name = default_site_name(host)
    what = f"{look.wiki.name}, {look.wiki.software}" if look.wiki else look.title or host
    lines = [
        f"# {_one_line(what)}",
        f"# Made by: crawld init {look.url}",
        "# Try it:  crawld check-config crawld.toml && crawld run --config crawld.toml",
        "# Every key with its default and unit: crawld init DIR",
        "",
        "[daemon]",
        'db = "crawld.db" # all data; crawlctl finds the daemon from its directory',
        *_contact(look, contact),
        "",
        "[web]",
        'listen = "127.0.0.1:8080" # the mirror in a browser',
        "",
        "[politeness]",
        *_delay(look),
        *_media_group(look),
        "",
        "[[site]]",
        f"name = {to_toml(name)}",
        f"seeds = [{to_toml(look.url)}]",
    ]
    lines += _wiki(look, look.wiki) if look.wiki else _plain(look)
    if look.is_private:
        lines.append(f"allow_private_hosts = [{to_toml(host)}]")
    return "\n".join(lines) + "\n"


def is_wikimedia(host: str) -> bool:
    """Whether a host is a wiki of the Wikimedia Foundation."""
    return host.endswith(tuple(f".{domain}" for domain in WIKIMEDIA_DOMAINS))


def _one_line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in " ".join(text.split()))[:200]


def _contact(look: SiteLook, contact: str | None) -> Iterator[str]:
    if contact is not None:
        yield f"contact = {to_toml(contact)} # sent with each request"
    else:
        needed = "may be set" if look.is_private else "required for public hosts"
        yield f"# A web page or e-mail address where the site can reach you; {needed}:"
        yield '#contact = "you@example.org"'


def _delay(look: SiteLook) -> Iterator[str]:
    if look.crawl_delay_s is not None:
        yield f"# robots.txt asks for {look.crawl_delay_s:g} s, which holds if it is longer."
    yield "host_delay_s = 15.0 # between two requests; ask the site before you lower it"


def _media_group(look: SiteLook) -> Iterator[str]:
    if is_wikimedia(split_url(look.url).host):
        yield "# Wikimedia's limit for all its media hosts together: 2 connections, 25 Mbit/s."
        limits = "max_connections = 2, max_bytes_per_s = 3125000, host_delay_s = 1.0"
        yield f'groups = [{{ hosts = ["{WIKIMEDIA_MEDIA}"], {limits} }}]'


def _links() -> Iterator[str]:
    yield "max_depth = 1 # links followed from the seeds"
    yield "max_pages = 1000"


def _requisite_hosts(look: SiteLook) -> Iterator[str]:
    hosts = [WIKIMEDIA_MEDIA, WIKIMEDIA_FORMULAS] if is_wikimedia(split_url(look.url).host) else []
    hosts += [host for host in look.media_hosts if host not in hosts]
    if hosts:
        yield f"requisite_hosts = {to_toml(hosts)} # images and styles"


def _plain(look: SiteLook) -> Iterator[str]:
    yield from _links()
    path = target_of(look.url).partition("?")[0]
    folder = path.rpartition("/")[0] + "/"
    if folder != "/":
        yield f"include = [{to_toml('prefix:' + folder)}] # only this folder"
    yield from _requisite_hosts(look)
    if look.sitemaps:
        shown = ", ".join(look.sitemaps[:MAX_SITEMAPS_SHOWN])
        yield f"# Its sitemaps are read for new and changed pages: {_one_line(shown)}"
        yield "#sitemaps = false"


def _wiki(look: SiteLook, wiki: WikiLook) -> Iterator[str]:
    path, _, after = wiki.article_path.partition("$1")
    special, category = _one_line(wiki.special), _one_line(wiki.category)
    yield "api = true # the wiki reports its changes; pages are visited when they change"
    yield from _links()
    if path != "/" and "?" not in path and not after:
        yield f"include = [{to_toml('prefix:' + path)}]"
    if wiki.special and "?" not in path and not after:
        yield f"exclude = [{to_toml(f'prefix:{path}{special}:')}]"
    yield from _requisite_hosts(look)
    host = split_url(look.url).host
    if is_wikimedia(host):
        yield "# Changes within seconds, without requests to the wiki itself:"
        yield f"#event_stream = {to_toml(WIKIMEDIA_STREAM)}"
    yield '#page_source = "parsoid" # the articles alone, without menus and scripts'
    yield "#settle_s = 1800.0 # show a copy after this time: most vandalism is reverted by then"
    yield ""
    yield "# Instead of following links: a part of the wiki, that grows and shrinks with it. Remove"
    yield '# the "#" of one or more keys, and the lines max_depth and max_pages above.'
    title = _one_line(look.title).partition(" - ")[0].partition(" – ")[0] or "Main Page"
    yield f"#wiki_titles = [{to_toml(title)}]"
    yield f"#wiki_categories = [{to_toml(f'{category}:{title}')}]"
    yield "#wiki_category_depth = 1 # levels of subcategories"
    yield f"#wiki_prefixes = [{to_toml(f'{title} (')}]"
    yield "#wiki_talk = true # with discussion pages"
    yield "# All titles of a file, one a line:"
    yield '#titles_file = "titles.txt"'
    if not after:
        origin = split_url(look.url).origin
        yield f"#title_url = {to_toml(f'{origin}{path}{{title}}')}"
