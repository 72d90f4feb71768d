"""Every key of the config file: its name, default, unit, limits and meaning, in one place.

The models are frozen; no file is opened and no name resolved here. The commented template, the
manual page's test, the error messages and the reload plan are all derived from the fields below, so
a key is added here, or for sites in `crawld/config/site.py`, and nowhere else.

Rule 1: a name carries its unit (`_s` seconds, `_bytes`, `_share` a number from 0 to 1).
Rule 2: a key that cannot change while the daemon runs is marked `restart=True`; a reload that would
change one is refused as a whole.
Rule 3: unknown keys are refused (`extra="forbid"`).
Rule 4: no secret is a key; headers and passwords live in a file of their own (`headers_file`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StrictBool

from crawld.config.key import MIB, ConfigTable, key
from crawld.config.site import SiteConfig
from crawld.config.values import (
    AddressText,
    Contact,
    Count,
    FilePath,
    HostName,
    HostPattern,
    ListenText,
    PositiveSeconds,
    QuietHoursText,
    Seconds,
    Share,
    TimeZone,
)
from crawld.core.revisit.names import PolicyName


class DaemonConfig(ConfigTable):
    """Where the daemon keeps its file and socket, and who it says it is."""

    db: FilePath = key(
        Path("crawld.db"),
        "The database: everything crawld knows; unset: crawld.db in the working directory.",
        restart=True,
    )
    socket: FilePath | None = key(
        None, "The control socket; unset: beside the database.", restart=True
    )
    socket_group: str | None = key(
        None, "Group that may use the control socket; unset: the daemon's own.", restart=True
    )
    contact: Contact | None = key(
        None, "Who answers for this crawler: an e-mail or web address; a must for public hosts."
    )
    log_level: Literal["debug", "info", "warning", "error"] = key(
        "info", "The least severe log line written: debug, info, warning or error."
    )
    log_format: Literal["auto", "json", "console"] = key(
        "auto", "json, console, or auto: console on a terminal, else json.", restart=True
    )
    max_in_flight: Annotated[int, Field(strict=True, ge=1, le=20_000)] = key(
        512, "Fetches at one time, over all hosts.", unit="fetches", restart=True
    )


class DnsConfig(ConfigTable):
    """How host names become addresses."""

    nameservers: tuple[AddressText, ...] = key(
        (),
        'Servers to ask: ["192.0.2.1"]; empty: as the system does, /etc/hosts included.',
        restart=True,
    )
    nameserver_port: Annotated[int, Field(strict=True, ge=1, le=65_535)] = key(
        53, "The port that those servers listen on.", restart=True
    )
    hosts: dict[HostName, tuple[AddressText, ...]] = key(
        {}, 'Fixed addresses: { "wiki.test" = ["127.0.0.1"] }.', restart=True
    )


class HostGroupConfig(ConfigTable):
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


class PolitenessConfig(ConfigTable):
    """How long every host is left alone between two requests."""

    host_delay_s: Seconds = key(15.0, "Rest between two requests to one host.", unit="seconds")
    address_delay_s: Seconds | None = key(
        None,
        "Rest between two requests to one address; unset: a tenth of the host delay.",
        unit="seconds",
    )
    respect_crawl_delay: StrictBool = key(
        True, "Whether Crawl-delay and Request-rate of robots.txt lengthen the host delay."
    )
    max_crawl_delay_s: Seconds = key(
        300.0, "The longest delay a robots.txt can ask for; more is cut to this.", unit="seconds"
    )
    quiet_hours: QuietHoursText = key(
        (), 'Times of day without any request: ["01:00-05:30"]; may span midnight.'
    )
    timezone: TimeZone = key("UTC", "Time zone of quiet_hours.")
    groups: tuple[HostGroupConfig, ...] = key(
        (),
        'Hosts that share a limit: [{ hosts = ["upload.wikimedia.org"], max_connections = 2,'
        " max_bytes_per_s = 3125000, host_delay_s = 1.0 }].",
    )


class FetchConfig(ConfigTable):
    """Limits of one request; whatever passes one ends as a failed visit."""

    connect_s: PositiveSeconds = key(10.0, "Time to resolve, connect and greet.", unit="seconds")
    header_s: PositiveSeconds = key(20.0, "Time until the response headers.", unit="seconds")
    stall_s: PositiveSeconds = key(15.0, "Longest silence inside a body.", unit="seconds")
    total_s: PositiveSeconds = key(60.0, "Time for the whole request.", unit="seconds")
    max_wire_bytes: Count = key(16 * MIB, "Size cap of a body as sent.", unit="bytes")
    max_body_bytes: Count = key(64 * MIB, "Size cap of a body once decompressed.", unit="bytes")
    max_header_bytes: Count = key(65_536, "Size cap of the response headers.", unit="bytes")
    http2: StrictBool = key(False, "Whether HTTP/2 is offered; one request at a time gains none.")


class StoreConfig(ConfigTable):
    """How the database is written."""

    batch_max_age_s: Annotated[float, Field(strict=True, gt=0, le=10, allow_inf_nan=False)] = key(
        0.2, "Longest time a finished visit waits for its commit.", unit="seconds", restart=True
    )
    min_free_bytes: Annotated[int, Field(strict=True, ge=0, le=2**53)] = key(
        256 * MIB, "With less room than this on the disk the crawl pauses.", unit="bytes"
    )
    max_bytes: Count | None = key(
        None,
        "Most bytes the database may hold; beyond it superseded copies go first, then what no"
        " page shows, then pages that are gone: crawlctl retention.",
        unit="bytes",
    )


class FrontierConfig(ConfigTable):
    """Traps: URLs that only a machine would make are counted and left alone."""

    max_url_length: Annotated[int, Field(strict=True, ge=50, le=65_536)] = key(
        2_000, "Longest URL admitted.", unit="characters"
    )
    max_segments: Count = key(20, "Most path segments in a URL.", unit="segments")
    max_repeated_segments: Count = key(
        3, "How often one path segment may occur in a URL.", unit="occurrences"
    )
    max_query_parameters: Annotated[int, Field(strict=True, ge=0, le=10_000)] = key(
        40, "Most query parameters in a URL.", unit="parameters"
    )
    max_calendar_run: Annotated[int, Field(strict=True, ge=0, le=12_000)] = key(
        24, "How far ahead of now a dated URL may lie.", unit="months"
    )
    max_calendar_past_years: Annotated[int, Field(strict=True, ge=0, le=10_000)] = key(
        250, "How far back a dated listing may lie.", unit="years"
    )
    max_pages_per_host: Count = key(10_000_000, "Most pages admitted on one host.", unit="pages")
    max_links_per_page: Count = key(10_000, "Links read from one page.", unit="links")


class ContentConfig(ConfigTable):
    """How a change is told from noise, and a lying server from a true one."""

    confirm_pages: Annotated[int, Field(strict=True, ge=0, le=10_000)] = key(
        6,
        "Pages of each host fetched twice, one host delay apart, to learn what changes by itself.",
        unit="pages",
    )
    check_share: Share = key(
        0.05,
        "Share of the conditional requests sent without conditions, to find servers that lie.",
        unit="share from 0 to 1",
    )


class ScheduleConfig(ConfigTable):
    """What a free fetch slot is spent on."""

    discovery_share: Share = key(
        0.5, "Share of the slots for new pages while revisits are due.", unit="share from 0 to 1"
    )
    requisite_share: Share = key(
        0.3,
        "Share of a host's slots for images, styles and scripts while its pages want them too.",
        unit="share from 0 to 1",
    )
    min_revisit_s: Seconds = key(
        3_600.0,
        "Shortest time between two visits of one page; a source of hints that is mostly right"
        " ends it.",
        unit="seconds",
    )
    policy: PolicyName = key(
        "index",
        "Order of revisits. index: where a visit is worth most; uniform: the longest unvisited"
        " first; merge, delayed, random-f: at the frequencies of the allocate job; greedy, random.",
    )


class JobsConfig(ConfigTable):
    """Work beside the crawl: exact change histories from the APIs of wikis (site key api)."""

    backfill_every_s: PositiveSeconds = key(
        600.0, "Pause between two rounds of reading change histories.", unit="seconds"
    )
    backfill_share: Share = key(
        0.1,
        "Most of a busy host's turns that reading histories may take; an idle host gives all.",
        unit="share from 0 to 1",
    )
    backfill_revisions: Count = key(
        50_000, "Most revisions read of one page, the newest first.", unit="revisions"
    )
    poll_share: Share = key(
        0.25,
        "Most of a host's turns that asking for changes (hints) may take; 0: none is asked for.",
        unit="share from 0 to 1",
    )
    audit_share: Share = key(
        0.02,
        "Share of a host's turns for random visits that measure how fresh its copies are.",
        unit="share from 0 to 1",
    )
    api_maxlag_s: PositiveSeconds = key(
        5.0, "An API whose databases lag behind by more is left alone.", unit="seconds"
    )


class WebConfig(ConfigTable):
    """The mirror in a browser: read-only, without passwords; whoever can connect can read it."""

    listen: ListenText | None = key(
        None, 'Where: "127.0.0.1:8080", "[::1]:8080"; port 0 takes any; unset: off.', restart=True
    )
    hosts: tuple[HostPattern, ...] = key(
        (),
        'Names it is asked by, beside addresses, localhost and this machine\'s: ["*.example.org"].',
        restart=True,
    )
    banner: StrictBool = key(
        True,
        "Whether pages carry a line with source, instant, revision and licence.",
        restart=True,
    )
    scripts: StrictBool = key(
        True,
        "Whether scripts of mirrored pages run: shut in, without storage or connections.",
        restart=True,
    )


class ReplicasConfig(ConfigTable):
    """Hosts that show what another shows: found, rested, sampled."""

    prune: StrictBool = key(
        True, "Whether pages of a certain replica rest where the host that is kept has them."
    )
    every_s: PositiveSeconds = key(
        3_600.0, "Pause between two searches for replicas.", unit="seconds"
    )
    storm_share: Share = key(
        0.05,
        "Share of all hosts, of ten at least, that one search may prune; more at once wait for"
        " crawlctl replicas confirm --all.",
        unit="share from 0 to 1",
    )
    sample_pages: Annotated[int, Field(strict=True, ge=3, le=1_000)] = key(
        8,
        "Pages of each replica visited now and then, to see whether it still is one.",
        unit="pages",
    )
    first_sample_s: PositiveSeconds = key(
        21_600.0, "When a few of a new replica are visited first.", unit="seconds"
    )
    sample_every_s: PositiveSeconds = key(
        7 * 86_400.0, "How often they are at last; a new replica sooner.", unit="seconds"
    )
    prefer: tuple[HostName, ...] = key(
        (), 'Hosts kept whatever speaks for their replicas: ["www.example.org"].'
    )


class Config(ConfigTable):
    """The whole file."""

    daemon: DaemonConfig = Field(default_factory=DaemonConfig)
    dns: DnsConfig = Field(default_factory=DnsConfig)
    politeness: PolitenessConfig = Field(default_factory=PolitenessConfig)
    fetch: FetchConfig = Field(default_factory=FetchConfig)
    store: StoreConfig = Field(default_factory=StoreConfig)
    frontier: FrontierConfig = Field(default_factory=FrontierConfig)
    content: ContentConfig = Field(default_factory=ContentConfig)
    schedule: ScheduleConfig = Field(default_factory=ScheduleConfig)
    jobs: JobsConfig = Field(default_factory=JobsConfig)
    replicas: ReplicasConfig = Field(default_factory=ReplicasConfig)
    web: WebConfig = Field(default_factory=WebConfig)
    sites: tuple[SiteConfig, ...] = Field(default=(), alias="site")
