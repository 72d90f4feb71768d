"""Every key of the config file: its name, default, unit, limits and meaning, in one place.

The models are frozen; no file is opened and no name resolved here. The commented template, the
manual page's test, the error messages and the reload plan are all derived from the fields below, so
a key is added here and nowhere else.

Rule 1: a name carries its unit (`_s` seconds, `_bytes`, `_share` a number from 0 to 1).
Rule 2: a key that cannot change while the daemon runs is marked `restart=True`; a reload that would
change one is refused as a whole.
Rule 3: unknown keys are refused (`extra="forbid"`).
Rule 4: no secret is a key; headers and passwords live in a file of their own (`headers_file`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, model_validator

from crawld.config.values import (
    AddressText,
    Contact,
    ContentType,
    Count,
    Days,
    Depth,
    FilePath,
    HostName,
    HostPattern,
    ListenText,
    PositiveSeconds,
    ProxyUrl,
    QuietHoursText,
    RuleText,
    Seconds,
    Share,
    SiteName,
    TimeZone,
    TitleUrl,
    WebUrl,
)
from crawld.core.revisit.names import PolicyName

_T = TypeVar("_T")

DEFAULT_CONTENT_TYPES = ("text/html", "application/xhtml+xml")
DEFAULT_REQUISITE_TYPES = (
    *("image/*", "font/*", "text/css", "text/javascript", "application/javascript"),
    *("application/x-javascript", "application/font-woff", "application/vnd.ms-fontobject"),
)
MIB = 1 << 20


def _key(default: _T, meaning: str, *, unit: str = "", restart: bool = False) -> _T:
    """Return a pydantic field with crawld's own marks (unit, restart) beside its description."""
    return Field(
        default=default,
        description=meaning,
        json_schema_extra={"unit": unit, "restart": restart},
    )


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Daemon(_Table):
    """Where the daemon keeps its file and socket, and who it says it is."""

    db: FilePath = _key(
        Path("crawld.db"),
        "The database: everything crawld knows; unset: crawld.db in the working directory.",
        restart=True,
    )
    socket: FilePath | None = _key(
        None, "The control socket; unset: beside the database.", restart=True
    )
    socket_group: str | None = _key(
        None, "Group that may use the control socket; unset: the daemon's own.", restart=True
    )
    contact: Contact | None = _key(
        None, "Who answers for this crawler: an e-mail or web address; a must for public hosts."
    )
    log_level: Literal["debug", "info", "warning", "error"] = _key(
        "info", "The least severe log line written: debug, info, warning or error."
    )
    log_format: Literal["auto", "json", "console"] = _key(
        "auto", "json, console, or auto: console on a terminal, else json.", restart=True
    )
    max_in_flight: Annotated[int, Field(strict=True, ge=1, le=20_000)] = _key(
        512, "Fetches at one time, over all hosts.", unit="fetches", restart=True
    )


class Dns(_Table):
    """How host names become addresses."""

    nameservers: tuple[AddressText, ...] = _key(
        (),
        'Servers to ask: ["192.0.2.1"]; empty: as the system does, /etc/hosts included.',
        restart=True,
    )
    nameserver_port: Annotated[int, Field(strict=True, ge=1, le=65_535)] = _key(
        53, "The port that those servers listen on.", restart=True
    )
    hosts: dict[HostName, tuple[AddressText, ...]] = _key(
        {}, 'Fixed addresses: { "wiki.test" = ["127.0.0.1"] }.', restart=True
    )


class HostGroup(_Table):
    """Hosts that share a limit of connections and bytes."""

    hosts: tuple[HostPattern, ...] = Field(
        min_length=1, description='The hosts: ["upload.wikimedia.org", "*.cdn.example.net"].'
    )
    max_connections: Count = Field(default=2, description="Fetches from all of them at one time.")
    max_bytes_per_s: Annotated[int, Field(strict=True, ge=10_000, le=2**40)] | None = Field(
        default=None, description="Bytes a second over all of them; unset: no limit."
    )
    host_delay_s: Seconds | None = Field(
        default=None, description="Rest between two requests to one of them; unset: the site's."
    )


class Politeness(_Table):
    """How long every host is left alone between two requests."""

    host_delay_s: Seconds = _key(15.0, "Rest between two requests to one host.", unit="seconds")
    address_delay_s: Seconds | None = _key(
        None,
        "Rest between two requests to one address; unset: a tenth of the host delay.",
        unit="seconds",
    )
    respect_crawl_delay: StrictBool = _key(
        True, "Whether Crawl-delay and Request-rate of robots.txt lengthen the host delay."
    )
    max_crawl_delay_s: Seconds = _key(
        300.0, "The longest delay a robots.txt can ask for; more is cut to this.", unit="seconds"
    )
    quiet_hours: QuietHoursText = _key(
        (), 'Times of day without any request: ["01:00-05:30"]; may span midnight.'
    )
    timezone: TimeZone = _key("UTC", "Time zone of quiet_hours.")
    groups: tuple[HostGroup, ...] = _key(
        (),
        'Hosts that share a limit: [{ hosts = ["upload.wikimedia.org"], max_connections = 2,'
        " max_bytes_per_s = 3125000, host_delay_s = 1.0 }].",
    )


class Fetch(_Table):
    """Limits of one request; whatever passes one ends as a failed visit."""

    connect_s: PositiveSeconds = _key(10.0, "Time to resolve, connect and greet.", unit="seconds")
    header_s: PositiveSeconds = _key(20.0, "Time until the response headers.", unit="seconds")
    stall_s: PositiveSeconds = _key(15.0, "Longest silence inside a body.", unit="seconds")
    total_s: PositiveSeconds = _key(60.0, "Time for the whole request.", unit="seconds")
    max_wire_bytes: Count = _key(16 * MIB, "Size cap of a body as sent.", unit="bytes")
    max_body_bytes: Count = _key(64 * MIB, "Size cap of a body once decompressed.", unit="bytes")
    max_header_bytes: Count = _key(65_536, "Size cap of the response headers.", unit="bytes")
    http2: StrictBool = _key(False, "Whether HTTP/2 is offered; one request at a time gains none.")


class Store(_Table):
    """How the database is written."""

    batch_max_age_s: Annotated[float, Field(strict=True, gt=0, le=10, allow_inf_nan=False)] = _key(
        0.2, "Longest time a finished visit waits for its commit.", unit="seconds", restart=True
    )
    min_free_bytes: Annotated[int, Field(strict=True, ge=0, le=2**53)] = _key(
        256 * MIB, "With less room than this on the disk the crawl pauses.", unit="bytes"
    )
    max_bytes: Count | None = _key(
        None,
        "Most bytes the database may hold; beyond it superseded copies go first, then what no"
        " page shows, then pages that are gone: crawlctl retention.",
        unit="bytes",
    )


class Frontier(_Table):
    """Traps: URLs that only a machine would make are counted and left alone."""

    max_url_length: Annotated[int, Field(strict=True, ge=50, le=65_536)] = _key(
        2_000, "Longest URL admitted.", unit="characters"
    )
    max_segments: Count = _key(20, "Most path segments in a URL.", unit="segments")
    max_repeated_segments: Count = _key(
        3, "How often one path segment may occur in a URL.", unit="occurrences"
    )
    max_query_parameters: Annotated[int, Field(strict=True, ge=0, le=10_000)] = _key(
        40, "Most query parameters in a URL.", unit="parameters"
    )
    max_calendar_run: Annotated[int, Field(strict=True, ge=0, le=12_000)] = _key(
        24, "How far ahead of now a dated URL may lie.", unit="months"
    )
    max_calendar_past_years: Annotated[int, Field(strict=True, ge=0, le=10_000)] = _key(
        250, "How far back a dated listing may lie.", unit="years"
    )
    max_pages_per_host: Count = _key(10_000_000, "Most pages admitted on one host.", unit="pages")
    max_links_per_page: Count = _key(10_000, "Links read from one page.", unit="links")


class Content(_Table):
    """How a change is told from noise, and a lying server from a true one."""

    confirm_pages: Annotated[int, Field(strict=True, ge=0, le=10_000)] = _key(
        6,
        "Pages of each host fetched twice, one host delay apart, to learn what changes by itself.",
        unit="pages",
    )
    check_share: Share = _key(
        0.05,
        "Share of the conditional requests sent without conditions, to find servers that lie.",
        unit="share from 0 to 1",
    )


class Schedule(_Table):
    """What a free fetch slot is spent on."""

    discovery_share: Share = _key(
        0.5, "Share of the slots for new pages while revisits are due.", unit="share from 0 to 1"
    )
    requisite_share: Share = _key(
        0.3,
        "Share of a host's slots for images, styles and scripts while its pages want them too.",
        unit="share from 0 to 1",
    )
    min_revisit_s: Seconds = _key(
        3_600.0,
        "Shortest time between two visits of one page; a source of hints that is mostly right"
        " ends it.",
        unit="seconds",
    )
    policy: PolicyName = _key(
        "index",
        "Order of revisits. index: where a visit is worth most; uniform: the longest unvisited"
        " first; merge, delayed, random-f: at the frequencies of the allocate job; greedy, random.",
    )


class Jobs(_Table):
    """Work beside the crawl: exact change histories from the APIs of wikis (site key api)."""

    backfill_every_s: PositiveSeconds = _key(
        600.0, "Pause between two rounds of reading change histories.", unit="seconds"
    )
    backfill_share: Share = _key(
        0.1,
        "Most of a busy host's turns that reading histories may take; an idle host gives all.",
        unit="share from 0 to 1",
    )
    backfill_revisions: Count = _key(
        50_000, "Most revisions read of one page, the newest first.", unit="revisions"
    )
    poll_share: Share = _key(
        0.25,
        "Most of a host's turns that asking for changes (hints) may take.",
        unit="share from 0 to 1",
    )
    audit_share: Share = _key(
        0.02,
        "Share of a host's turns for random visits that measure how fresh its copies are.",
        unit="share from 0 to 1",
    )
    api_maxlag_s: PositiveSeconds = _key(
        5.0, "An API whose databases lag behind by more is left alone.", unit="seconds"
    )


class Web(_Table):
    """The mirror in a browser: read-only, without passwords; whoever can connect can read it."""

    listen: ListenText | None = _key(
        None, 'Where: "127.0.0.1:8080", "[::1]:8080"; port 0 takes any; unset: off.', restart=True
    )
    banner: StrictBool = _key(
        True,
        "Whether pages carry a line with source, instant, revision and licence.",
        restart=True,
    )
    scripts: StrictBool = _key(
        True,
        "Whether scripts of mirrored pages run: shut in, without storage or connections.",
        restart=True,
    )


class Replicas(_Table):
    """Hosts that show what another shows: found, rested, sampled."""

    prune: StrictBool = _key(
        True, "Whether pages of a certain replica rest where the host that is kept has them."
    )
    every_s: PositiveSeconds = _key(
        3_600.0, "Pause between two searches for replicas.", unit="seconds"
    )
    sample_pages: Annotated[int, Field(strict=True, ge=3, le=1_000)] = _key(
        8,
        "Pages of each replica visited now and then, to see whether it still is one.",
        unit="pages",
    )
    sample_every_s: PositiveSeconds = _key(7 * 86_400.0, "How often they are.", unit="seconds")
    prefer: tuple[HostName, ...] = _key(
        (), 'Hosts kept whatever speaks for their replicas: ["www.example.org"].'
    )


class Weight(_Table):
    """How much the pages of one pattern matter."""

    pattern: RuleText = Field(description='Pages meant: "prefix:...", "glob:..." or "regex:...".')
    importance: Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)] = Field(
        description="How much these pages matter; a page without a weight has 1."
    )


class Site(_Table):
    """One site to mirror: where it starts, what belongs to it, how it is treated."""

    name: SiteName = Field(description="Short name of the site, used in commands and logs.")
    seeds: tuple[str, ...] = _key((), 'URLs to start from: ["https://docs.example.org/"].')
    seeds_file: FilePath | None = _key(
        None, "File of further seeds, one URL a line, # for comments."
    )
    titles_file: FilePath | None = _key(None, "File of page titles, one a line; needs title_url.")
    title_url: TitleUrl | None = _key(
        None, 'URL of a title: "https://en.wikipedia.org/wiki/{title}".'
    )
    hosts: tuple[HostName, ...] = _key((), "Further hosts that belong to the site.")
    subdomains: StrictBool = _key(False, "Whether all subdomains of its hosts belong to it.")
    include: tuple[RuleText, ...] = _key(
        (), 'Only URLs that match one: ["prefix:...", "glob:...", "regex:..."]; empty: all.'
    )
    exclude: tuple[RuleText, ...] = _key((), "Never URLs that match one, in the same form.")
    max_depth: Depth | None = _key(
        None, "Links followed from a seed; 0: the seeds alone; unset: no limit.", unit="links"
    )
    max_pages: Count | None = _key(None, "Most pages admitted; unset: no limit.", unit="pages")
    content_types: tuple[ContentType, ...] = _key(
        DEFAULT_CONTENT_TYPES, "Media types stored; image/* means every image."
    )
    requisites: StrictBool = _key(
        True, "Whether the images, styles, scripts and fonts that pages show are mirrored too."
    )
    requisite_hosts: tuple[HostPattern, ...] = _key(
        (),
        'Further hosts to load them from, such as "*.cdn.example.net", "*" for any; those of the'
        " site and of its registered domain always may be.",
    )
    requisite_types: tuple[ContentType, ...] = _key(
        DEFAULT_REQUISITE_TYPES, "Media types of them that are stored; video and audio are not."
    )
    requisite_max_bytes: Count = _key(8 * MIB, "Size cap of each of them.", unit="bytes")
    max_requisites: Count = _key(
        200_000, "Most of them admitted; max_pages does not count them.", unit="requisites"
    )
    change_threshold: Share = _key(
        0.0,
        "Weighted difference from which a page counts as changed; 0: any difference but noise.",
        unit="share from 0 to 1",
    )
    host_delay_s: Seconds | None = _key(
        None, "Overrides [politeness] host_delay_s for this site.", unit="seconds"
    )
    quiet_hours: QuietHoursText | None = _key(
        None, "Overrides [politeness] quiet_hours for this site."
    )
    timezone: TimeZone | None = _key(None, "Overrides [politeness] timezone for this site.")
    policy: PolicyName | None = _key(None, "Overrides [schedule] policy for this site.")
    use_replicas: StrictBool = _key(
        False,
        "Whether idle replicas that proved fresh may be asked for its pages while the host that is"
        " kept has to rest.",
    )
    keep_versions: Count | None = _key(
        None, "Newest copies kept of a page, besides the first; unset: all.", unit="copies"
    )
    keep_days: Days | None = _key(
        None,
        "How long a superseded copy is kept, except the first; unset: for ever.",
        unit="days",
    )
    max_bytes: Count | None = _key(
        None, "Most bytes of stored copies of the site; then as [store] max_bytes.", unit="bytes"
    )
    max_vanish_share: Share = _key(
        0.2,
        "Share of a host's pages that may go within 30 days; beyond it all are kept, and a"
        " warning given.",
        unit="share from 0 to 1",
    )
    settle_s: Seconds = _key(
        0.0,
        "How long a copy must have stood before it is shown; newer ones are kept meanwhile.",
        unit="seconds",
    )
    weights: tuple[Weight, ...] = _key(
        (), 'How much pages matter: [{ pattern = "glob:...", importance = 2.0 }]; first match wins.'
    )
    headers_file: FilePath | None = _key(
        None, "File of request headers and password for this site, mode 0600."
    )
    allow_private: StrictBool = _key(
        False, "Whether private and loopback addresses may be fetched for this site."
    )
    allow_private_hosts: tuple[HostName, ...] = _key((), "The same for these hosts alone.")
    follow_redirects_out_of_scope: StrictBool = _key(
        False, "Whether a redirect out of the site's scope is followed."
    )
    sitemaps: StrictBool = _key(
        True, "Whether the sitemaps that robots.txt names tell of new and changed pages."
    )
    sitemap_urls: tuple[WebUrl, ...] = _key(
        (), 'Further sitemaps: ["https://docs.example.org/sitemap.xml"].'
    )
    feeds: tuple[WebUrl, ...] = _key((), "RSS and Atom feeds that tell of new and changed pages.")
    listings: tuple[WebUrl, ...] = _key(
        (), "Pages of links whose Last-Modified and dates tell of changes, such as directories."
    )
    event_stream: WebUrl | None = _key(
        None,
        "Stream of events that tells of changes as they happen:"
        ' "https://stream.wikimedia.org/v2/stream/recentchange".',
    )
    wiki_titles: tuple[str, ...] = _key(
        (), "Of a MediaWiki (with api): only these titles, however they are spelt."
    )
    wiki_categories: tuple[str, ...] = _key(
        (), 'Of a MediaWiki (with api): only the pages of these categories: ["Category:Physics"].'
    )
    wiki_category_depth: Depth = _key(
        0, "Categories within those categories that are followed.", unit="categories"
    )
    wiki_prefixes: tuple[str, ...] = _key(
        (), 'Of a MediaWiki (with api): only titles that begin so: ["Help:", "List of "].'
    )
    wiki_talk: StrictBool = _key(
        False, "Whether the discussions of a MediaWiki (with api) belong to the site."
    )
    proxy: ProxyUrl | None = _key(
        None,
        'HTTP proxy for every request of the site: "http://proxy.example.org:3128"; targets stay'
        " fenced as far as their names are known here.",
    )
    monthly_bytes: Count | None = _key(
        None,
        "Most bytes received for the site in a calendar month (UTC); then it rests until the next.",
        unit="bytes",
    )
    api: StrictBool = _key(
        False,
        "Whether the API its pages name (MediaWiki's) may be asked when pages changed.",
    )

    @property
    def wiki_scoped(self) -> bool:
        """Whether the wiki says which pages belong to the site, and links do not."""
        return bool(self.wiki_titles or self.wiki_categories or self.wiki_prefixes)

    @model_validator(mode="after")
    def _has_seeds(self) -> Site:
        if (self.titles_file is None) != (self.title_url is None):
            raise ValueError("titles_file and title_url need each other")
        if self.wiki_scoped and not self.api:
            raise ValueError("wiki_titles, wiki_categories and wiki_prefixes need api = true")
        if not (self.seeds or self.seeds_file or self.titles_file):
            raise ValueError("needs seeds, seeds_file or titles_file")
        return self


class Config(_Table):
    """The whole file."""

    daemon: Daemon = Field(default_factory=Daemon)
    dns: Dns = Field(default_factory=Dns)
    politeness: Politeness = Field(default_factory=Politeness)
    fetch: Fetch = Field(default_factory=Fetch)
    store: Store = Field(default_factory=Store)
    frontier: Frontier = Field(default_factory=Frontier)
    content: Content = Field(default_factory=Content)
    schedule: Schedule = Field(default_factory=Schedule)
    jobs: Jobs = Field(default_factory=Jobs)
    replicas: Replicas = Field(default_factory=Replicas)
    web: Web = Field(default_factory=Web)
    sites: tuple[Site, ...] = Field(default=(), alias="site")
