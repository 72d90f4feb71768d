"""The config model of a `[[site]]` block.

The rules of `crawld/config/model.py` apply here too.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StrictBool, model_validator

from crawld.config.key import MIB, ConfigTable, key
from crawld.config.profiles import ProfileConfig, WantedConfig
from crawld.config.values import (
    ByteRate,
    ContentType,
    Count,
    Days,
    Depth,
    FilePath,
    HostName,
    HostPattern,
    PartText,
    PolicyText,
    ProxyUrl,
    QuietHoursText,
    RequestRate,
    RevisitSeconds,
    RuleText,
    Seconds,
    Share,
    SiteName,
    TimeZone,
    TitleUrl,
    WebOrigin,
    WebUrl,
)

DEFAULT_CONTENT_TYPES = ("text/html", "application/xhtml+xml")
DEFAULT_REQUISITE_TYPES = (
    *("image/*", "font/*", "text/css", "text/javascript", "application/javascript"),
    *("application/x-javascript", "application/font-woff", "application/vnd.ms-fontobject"),
)


class Weight(ConfigTable):
    """Importance of the pages that match a pattern."""

    pattern: RuleText = Field(
        description='Pattern of the pages: "prefix:...", "glob:..." or "regex:...".'
    )
    importance: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)] = Field(
        description="Importance of these pages; that of pages without a weight is 1."
    )


DeletedPages = Literal["mark", "withhold"]


class SiteConfig(ConfigTable):
    """One site to mirror: where it starts, what belongs to it, how it is crawled."""

    name: SiteName = Field(description="Short name of the site, used in commands and logs.")
    seeds: tuple[str, ...] = key((), 'URLs to start from: ["https://docs.example.org/"].')
    seeds_file: FilePath | None = key(
        None, "File of further seeds, one URL per line, # for comments."
    )
    titles_file: FilePath | None = key(
        None,
        "File of page titles, one per line: seeds by title_url, or without it, with api, further "
        "wiki_titles.",
    )
    title_url: TitleUrl | None = key(
        None,
        'URL of a title in titles_file and views_file: "https://en.wikipedia.org/wiki/{title}".',
    )
    hosts: tuple[HostName, ...] = key((), "Further hosts that belong to the site.")
    subdomains: StrictBool = key(False, "Whether all subdomains of its hosts belong to it.")
    include: tuple[RuleText, ...] = key(
        (),
        'Only URLs that match one of these: ["prefix:...", "glob:...", "regex:..."]; empty: all.',
    )
    exclude: tuple[RuleText, ...] = key(
        (), "No URLs that match one of these; same form as include."
    )
    sort_query: StrictBool = key(
        False,
        "Whether the order of query parameters means nothing on this site: /x?b=1&a=2 is then "
        "/x?a=2&b=1.",
    )
    max_depth: Depth | None = key(
        None, "Links followed from a seed; 0: only the seeds; unset: no limit.", unit="links"
    )
    max_pages: Count | None = key(None, "Most pages admitted; unset: no limit.", unit="pages")
    content_types: tuple[ContentType, ...] = key(
        DEFAULT_CONTENT_TYPES,
        "Media types of pages that are stored. Text, JSON, feeds and PDF are compared, searched "
        "and diffed by their text; image/* means every image.",
    )
    requisites: StrictBool = key(
        True, "Whether images, styles, scripts and fonts of pages (requisites) are mirrored too."
    )
    requisite_hosts: tuple[HostPattern, ...] = key(
        (),
        'Further hosts to load requisites from, such as "*.cdn.example.net", "*" for any; hosts '
        "of the site and of its registered domain are always allowed.",
    )
    requisite_types: tuple[ContentType, ...] = key(
        DEFAULT_REQUISITE_TYPES,
        "Media types of requisites that are stored; video and audio are not.",
    )
    requisite_max_bytes: Count = key(8 * MIB, "Largest requisite.")
    max_requisites: Count = key(
        200_000, "Most requisites admitted; they do not count toward max_pages.", unit="requisites"
    )
    truncate: StrictBool = key(
        False,
        "Whether the start of a page larger than [fetch] max_wire_bytes or max_body_bytes is kept, "
        "marked as truncated, instead of failing; for requisites, requisite_max_bytes.",
    )
    change_threshold: Share = key(
        0.0,
        "Weighted difference from which a page counts as changed; 0: any difference except noise.",
        unit="share from 0 to 1",
    )
    difference: PartText = key(
        "rsync",
        "How the difference of two texts is measured: rsync, the weighted share of new text, or "
        'that of a plug-in: "PLUGIN:NAME".',
    )
    host_delay_s: Seconds | None = key(None, "Overrides [politeness] host_delay_s for this site.")
    max_requests_per_s: RequestRate | None = key(
        None,
        "Like [schedule] max_requests_per_s, for the hosts with pages of this site.",
        unit="requests per second",
    )
    max_bytes_per_s: ByteRate | None = key(
        None,
        "Like [schedule] max_bytes_per_s, for this site.",
        unit="bytes per second",
    )
    quiet_hours: QuietHoursText | None = key(
        None, "Overrides [politeness] quiet_hours for this site."
    )
    timezone: TimeZone | None = key(None, "Overrides [politeness] timezone for this site.")
    policy: PolicyText | None = key(None, "Overrides [schedule] policy for this site.")
    max_revisit_s: RevisitSeconds | None = key(
        None,
        "Longest time between two visits of a page, as far as the slots suffice; whatever the "
        "policy selects, pages that were not visited for so long come first. Unset: no limit.",
    )
    use_replicas: StrictBool = key(
        False,
        "Whether pages may be fetched from idle, proven fresh replicas while the canonical "
        "host's delay runs.",
    )
    dust: StrictBool = key(
        True,
        "Whether URLs that show the same page (session ids, print views, sort orders) are learnt, "
        "and one of each is visited; some of the others are, to check that they still agree.",
    )
    keep_versions: Count | None = key(
        None, "Newest copies kept per page, besides the first; unset: all.", unit="copies"
    )
    keep_days: Days | None = key(
        None, "How long a superseded copy is kept, except the first; unset: forever.", unit="days"
    )
    max_bytes: Count | None = key(
        None,
        "Largest size of the site's stored copies; beyond it, copies are deleted as by "
        "[store] max_bytes.",
    )
    max_vanish_share: Share = key(
        0.2,
        "Share of a host's pages that may vanish within 30 days; if exceeded, all are "
        "kept, with a warning.",
    )
    settle_s: Seconds = key(
        0.0,
        "Time that a copy must be current before it is shown; newer copies are stored but "
        "not shown.",
    )
    deleted_pages: DeletedPages = key(
        "mark",
        "Copies of pages that are gone, that their wiki reports as deleted or moved away, or that "
        "left the part of it that is mirrored: mark: shown with a note; withhold: readers and "
        "exports get a note (status 410) instead.",
    )
    weights: tuple[Weight, ...] = key(
        (),
        'Importance of pages: [{ pattern = "glob:...", importance = 2.0 }]; the first match wins.',
    )
    views_file: FilePath | None = key(
        None,
        "File of page views: a title or URL and a count per line; pages that are read more are "
        "kept fresher, on top of weights. Titles need title_url.",
    )
    profiles: tuple[ProfileConfig, ...] = key(
        (),
        'Ways to ask for pages: [{ name = "plain" }, { name = "german", accept_language = "de" }]. '
        "The one that brings the wanted form is learnt for each section of a host. Further keys: "
        'accept, user_agent_suffix, http ("1.1" or "2"), first_bytes, conditional.',
    )
    wanted: WantedConfig | None = key(
        None, 'Form in which pages are wanted (needs profiles): { language = "de" }.'
    )
    headers_file: FilePath | None = key(
        None,
        "File of request headers and passwords for this site, mode 0600; sent to the origins of "
        "its seeds only (same scheme, host and port).",
    )
    headers_origins: tuple[WebOrigin, ...] = key(
        (), 'Further origins that headers_file is sent to: ["https://www.example.org"].'
    )
    headers_over_http: StrictBool = key(
        False,
        "Whether headers_file is sent unencrypted, to origins with http://; otherwise only those "
        "on this machine get it so.",
    )
    allow_private: StrictBool = key(
        False, "Whether private and loopback addresses may be fetched for this site."
    )
    allow_private_hosts: tuple[HostName, ...] = key((), "Like allow_private, for these hosts only.")
    follow_redirects_out_of_scope: StrictBool = key(
        False, "Whether a redirect out of the site's scope is followed."
    )
    sitemaps: StrictBool = key(
        True, "Whether sitemaps named in robots.txt are read for new and changed pages."
    )
    sitemap_urls: tuple[WebUrl, ...] = key(
        (), 'Further sitemaps: ["https://docs.example.org/sitemap.xml"].'
    )
    feeds: tuple[WebUrl, ...] = key((), "RSS and Atom feeds to read for new and changed pages.")
    listings: tuple[WebUrl, ...] = key(
        (),
        "Pages of links, such as directories, read for changes by their dates and Last-Modified.",
    )
    event_stream: WebUrl | None = key(
        None,
        "Stream of server-sent events that reports changes as they happen: "
        '"https://stream.wikimedia.org/v2/stream/recentchange".',
    )
    wiki_titles: tuple[str, ...] = key(
        (), "Only these titles of a MediaWiki (needs api), in any spelling."
    )
    wiki_categories: tuple[str, ...] = key(
        (), 'Only the pages of a MediaWiki (needs api) in these categories: ["Category:Physics"].'
    )
    wiki_category_depth: Depth = key(0, "Levels of subcategories to follow.", unit="categories")
    wiki_prefixes: tuple[str, ...] = key(
        (),
        'Only titles of a MediaWiki (needs api) that begin with one of these: ["Help:", "List of '
        '"].',
    )
    wiki_moved: Literal["follow", "leave"] = key(
        "follow",
        "Whether a page of these that is renamed stays under its new title (follow) or leaves.",
    )
    wiki_talk: StrictBool = key(
        False,
        "Whether discussion pages of a MediaWiki (needs api) belong to the site; in a part of a "
        "wiki, those of its pages. Those that wiki_titles or wiki_prefixes name always do.",
    )
    proxy: ProxyUrl | None = key(
        None,
        'HTTP proxy for all requests of the site: "http://proxy.example.org:3128"; targets with '
        "private addresses are refused if their names resolve here.",
    )
    monthly_bytes: Count | None = key(
        None,
        "Most bytes received for the site per calendar month (UTC); then it pauses until the next.",
    )
    api: StrictBool = key(
        False, "Whether the MediaWiki API that its pages link to is queried for changed pages."
    )
    page_source: Literal["skin", "mobile", "parsoid"] = key(
        "skin",
        'Form of a MediaWiki\'s pages (needs api): "skin" as readers see them, "mobile" their view '
        'for phones (MobileFrontend), "parsoid" the article alone, with styles and without scripts '
        "(REST interface). Pages change their form when they are visited next.",
    )

    @property
    def wiki_scoped(self) -> bool:
        """Whether the wiki, not links, determines which pages belong to the site."""
        named = self.wiki_titles or self.wiki_categories or self.wiki_prefixes
        return bool(named or self.lists_titles)

    @property
    def lists_titles(self) -> bool:
        """Whether `titles_file` names titles of a wiki, as `wiki_titles` does, and no seeds."""
        return self.titles_file is not None and self.title_url is None and self.api

    def _check_first_bytes(self) -> None:
        least = self.wanted.min_bytes if self.wanted is not None else None
        for each in self.profiles:
            if least is not None and each.first_bytes is not None and each.first_bytes < least:
                raise ValueError(
                    f'profile "{each.name}" asks for {each.first_bytes} first_bytes, and wanted '
                    f"min_bytes is {least}: raise first_bytes or lower min_bytes"
                )

    @model_validator(mode="after")
    def _has_seeds(self) -> SiteConfig:
        if self.titles_file is not None and self.title_url is None and not self.api:
            raise ValueError("titles_file needs title_url, or api = true for titles of a MediaWiki")
        if self.title_url is not None and self.titles_file is None and self.views_file is None:
            raise ValueError("title_url needs titles_file or views_file")
        if self.headers_file is None and (self.headers_origins or self.headers_over_http):
            raise ValueError("headers_origins and headers_over_http need headers_file")
        if (self.wanted is None) != (not self.profiles):
            raise ValueError("profiles and wanted need each other")
        if len({each.name for each in self.profiles}) < len(self.profiles):
            raise ValueError("two profiles have one name")
        self._check_first_bytes()
        if self.page_source != "skin" and not self.api:
            raise ValueError(f'page_source = "{self.page_source}" needs api = true')
        if self.wiki_scoped and not self.api:
            raise ValueError("wiki_titles, wiki_categories and wiki_prefixes need api = true")
        if not (self.seeds or self.seeds_file or (self.titles_file and self.title_url)):
            if self.wiki_scoped:
                raise ValueError(
                    "needs a seed on the wiki, such as its main page: titles, categories and "
                    "prefixes do not say which wiki they belong to"
                )
            raise ValueError("needs seeds, seeds_file or titles_file")
        return self


INNER_TABLES: Final[dict[str, type[ConfigTable]]] = {
    "weights": Weight,
    "profiles": ProfileConfig,
    "wanted": WantedConfig,
}
"""Keys of a site whose values are tables, or lists of them."""
