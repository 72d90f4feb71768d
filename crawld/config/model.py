"""The config models: every key with its name, default, unit, limits and meaning.

The models are frozen; no file is opened and no name resolved here. The commented template, the test
of the manual page, the error messages and the reload are derived from these fields. Add a key only
here, for sites in `crawld/config/site.py`, for notifications in `crawld/config/notify.py`, and for
plug-ins in `crawld/config/plugin.py`.

Rule 1: a name carries its unit (`_s` seconds, `_bytes`, `_share` a number from 0 to 1).
Rule 2: a key that cannot change while the daemon runs is marked `restart=True`; a reload that would
change one is rejected as a whole.
Rule 3: unknown keys are rejected (`extra="forbid"`).
Rule 4: no key is a secret; headers and passwords are in separate files (`headers_file`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StrictBool

from crawld.config.key import MIB, ConfigTable, key
from crawld.config.notify import MAX_RULES, MailConfig, NotifyConfig
from crawld.config.plugin import MAX_PLUGINS, PluginConfig
from crawld.config.site import SiteConfig
from crawld.config.values import (
    AddressText,
    ByteRate,
    Contact,
    Count,
    Days,
    FilePath,
    HostName,
    HostPattern,
    ListenText,
    MemorySize,
    PartText,
    PolicyText,
    PositiveSeconds,
    PublicUrl,
    QuietHoursText,
    RequestRate,
    Seconds,
    Share,
    TimeZone,
)
from crawld.core.units import DAY_S


class DaemonConfig(ConfigTable):
    """The daemon: its files, its identity and its log."""

    # A path means the same place whether it is the default or written out.
    model_config = ConfigDict(validate_default=True)

    db: FilePath = key(
        Path("crawld.db"),
        "The database file, which holds everything; unset: crawld.db beside this file.",
        restart=True,
    )
    socket: FilePath | None = key(
        None, "The control socket; unset: beside the database.", restart=True
    )
    socket_group: str | None = key(
        None, "Group that may use the control socket; unset: the daemon's own.", restart=True
    )
    contact: Contact | None = key(
        None,
        "E-mail or web address of the operator, sent to every host; required for public hosts.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = key(
        "info", "Lowest level that is logged: debug, info, warning or error."
    )
    log_format: Literal["auto", "json", "console"] = key(
        "auto", "json, console, or auto: console on a terminal, else json.", restart=True
    )
    max_in_flight: Annotated[int, Field(strict=True, ge=1, le=20_000)] = key(
        512, "Most concurrent fetches, over all hosts.", unit="fetches", restart=True
    )
    max_memory: MemorySize | None = key(
        None,
        "Memory for fetched bodies, their decompression and analysis, records that wait, and pages "
        "of the web listener, which shows no copy that is larger than a twentieth of it, "
        'beyond what an idle daemon takes: "512 MiB", "2 GB" or a number of bytes, at least '
        "64 MiB; larger pages wait for their share, small ones never do; unset: a quarter of the "
        "memory of the machine or of its control group.",
        restart=True,
    )
    plugins_dir: FilePath | None = key(
        None,
        "Directory of plug-ins: NAME.py; one is used if there is a [[plugin]] block of its name.",
        restart=True,
    )
    freeze_s: Seconds = key(
        60.0,
        "End the process, with its stacks in the log, when it stands still for so long; 0: never.",
        restart=True,
    )


class DnsConfig(ConfigTable):
    """How host names are resolved."""

    nameservers: tuple[AddressText, ...] = key(
        (),
        'Name servers to query: ["192.0.2.1"]; empty: as the system does, /etc/hosts included.',
        restart=True,
    )
    nameserver_port: Annotated[int, Field(strict=True, ge=1, le=65_535)] = key(
        53, "Port of these name servers.", restart=True
    )
    hosts: dict[HostName, tuple[AddressText, ...]] = key(
        {}, 'Fixed addresses of hosts: { "wiki.test" = ["127.0.0.1"] }.', restart=True
    )


class HostGroupConfig(ConfigTable):
    """Hosts that share a limit of connections and bytes."""

    hosts: tuple[HostPattern, ...] = Field(
        min_length=1, description='The hosts: ["upload.wikimedia.org", "*.cdn.example.net"].'
    )
    max_connections: Count = Field(
        default=2, description="Most concurrent fetches, over all of them."
    )
    max_bytes_per_s: ByteRate | None = Field(
        default=None, description="Bytes per second, over all of them; unset: no limit."
    )
    max_requests_per_s: RequestRate | None = Field(
        default=None, description="Requests per second, over all of them; unset: no limit."
    )
    host_delay_s: Seconds | None = Field(
        default=None, description="Delay between two requests to one of them; unset: the site's."
    )


class PolitenessConfig(ConfigTable):
    """Delays between requests to a host, and times without requests."""

    host_delay_s: Seconds = key(15.0, "Delay between two requests to one host.")
    address_delay_s: Seconds | None = key(
        None, "Delay between two requests to one IP address; unset: a tenth of host_delay_s."
    )
    respect_crawl_delay: StrictBool = key(
        True, "Whether Crawl-delay and Request-rate in robots.txt lengthen the host delay."
    )
    max_crawl_delay_s: Seconds = key(
        300.0, "Longest delay that a robots.txt can set; longer ones are reduced to this."
    )
    quiet_hours: QuietHoursText = key(
        (), 'Times of day without requests: ["01:00-05:30"]; may span midnight.'
    )
    timezone: TimeZone = key("UTC", "Time zone of quiet_hours.")
    groups: tuple[HostGroupConfig, ...] = key(
        (),
        'Hosts that share a limit: [{ hosts = ["upload.wikimedia.org"], max_connections = 2,'
        " max_bytes_per_s = 3125000, max_requests_per_s = 2.0, host_delay_s = 1.0 }].",
    )


class FetchConfig(ConfigTable):
    """Limits of one request; a visit that exceeds one fails."""

    connect_s: PositiveSeconds = key(
        10.0, "Time for TCP and TLS; a name lookup has 10 s of its own."
    )
    header_s: PositiveSeconds = key(
        20.0, "Time from the request to the end of the response header."
    )
    stall_s: PositiveSeconds = key(15.0, "Longest time without data inside a body.")
    total_s: PositiveSeconds = key(60.0, "Time for the whole request.")
    max_wire_bytes: Count = key(16 * MIB, "Largest body as sent.")
    max_body_bytes: Count = key(64 * MIB, "Largest body after decompression.")
    max_header_bytes: Count = key(65_536, "Largest response header.")
    http2: StrictBool = key(
        False, "Whether to offer HTTP/2; a host has one request at a time, so that gains nothing."
    )


class StoreConfig(ConfigTable):
    """The database: commits and limits of size."""

    batch_max_age_s: Annotated[float, Field(strict=True, gt=0, le=10, allow_inf_nan=False)] = key(
        0.2, "Longest time from the end of a visit to its commit.", restart=True
    )
    min_free_bytes: Annotated[int, Field(strict=True, ge=0, le=2**53)] = key(
        256 * MIB, "Free disk space below which the crawl pauses."
    )
    max_bytes: Count | None = key(
        None,
        "Largest size of the database; beyond it, superseded copies are deleted first, then "
        "requisites that no page uses, then copies of gone pages: see crawlctl retention.",
    )
    keep_events: Count = key(
        1_000_000, "Newest events kept for feeds and notifications; 100 bytes each.", unit="events"
    )
    keep_visit_days: Days | None = key(
        None,
        "How long a visit is kept that says the same of its page as the visits before and after "
        "it; 220 bytes each. Unset: forever.",
        unit="days",
    )


class FrontierConfig(ConfigTable):
    """Crawler traps: URLs beyond these limits are counted and not crawled."""

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
        24, "How far in the future the date in a URL may be.", unit="months"
    )
    max_calendar_past_years: Annotated[int, Field(strict=True, ge=0, le=10_000)] = key(
        250, "How far in the past the date in the URL of a listing may be.", unit="years"
    )
    max_pages_per_host: Count = key(10_000_000, "Most pages admitted on one host.", unit="pages")
    max_links_per_page: Count = key(10_000, "Most links read from one page.", unit="links")


class ContentConfig(ConfigTable):
    """Analysis of content: noise, false validators, digests for replicas, words for the search."""

    confirm_pages: Annotated[int, Field(strict=True, ge=0, le=10_000)] = key(
        6,
        "Pages of each host that are fetched twice, one host delay apart, to learn what differs "
        "on every fetch, and as many again with noise that the first do not show; if that is "
        "more than 4 s later, those that differ a third time.",
        unit="pages",
        restart=True,
    )
    check_share: Share = key(
        0.05,
        "Share of the conditional requests sent without conditions, to detect false validators.",
        restart=True,
    )
    analyse: StrictBool = key(
        True,
        "Whether first copies are analysed, for replicas and equal pages; false: they are only "
        "stored, and analysed when a later visit finds a change.",
        restart=True,
    )
    search: StrictBool = key(
        True,
        "Whether copies are indexed for the full-text search; `crawld index` does it later.",
        restart=True,
    )


class ScheduleConfig(ConfigTable):
    """Distribution of fetch slots."""

    max_requests_per_s: RequestRate | None = key(
        None,
        "Most requests per second, of any kind and over all hosts, evenly spaced; hosts get turns "
        "where a visit is worth most. Unset: no limit but the delays of the hosts.",
        unit="requests per second",
    )
    max_bytes_per_s: ByteRate | None = key(
        None,
        "Most bytes received per second, over all hosts and a longer time: after a large page the "
        "next request waits. Unset: no limit.",
        unit="bytes per second",
    )
    discovery_share: Share = key(
        0.5, "Share of the slots for new pages while revisits are due.", restart=True
    )
    requisite_share: Share = key(
        0.3,
        "Share of a host's slots for images, styles and scripts while pages wait too.",
        restart=True,
    )
    min_revisit_s: Seconds = key(
        3_600.0,
        "Shortest time between two visits of one page; hints from a reliable source override it.",
        restart=True,
    )
    rate_classes_days: tuple[Days, ...] = key(
        (),
        "Mean times between changes of the classes that crawlctl page and crawlctl pages --class "
        "show; empty: 1/24, 1/4, 1, 3, 10, 30, 100 and 365.",
        unit="days",
    )
    policy: PolicyText = key(
        "index",
        "Order of revisits. index: highest value of a visit first; uniform: longest unvisited "
        "first; merge, delayed, random-f: at the frequencies of the allocate job; greedy, random; "
        'that of a plug-in: "PLUGIN:NAME".',
    )
    estimator: PartText | None = key(
        None,
        'Estimator of change rates that the allocate job uses: "PLUGIN:NAME"; unset: the change '
        "model of each page.",
        restart=True,
    )


class JobsConfig(ConfigTable):
    """Background jobs: change histories from wiki APIs (site key api), hints, audits."""

    backfill_every_s: PositiveSeconds = key(
        600.0, "Pause between two rounds of reading change histories."
    )
    backfill_share: Share = key(
        0.1,
        "Largest share of a busy host's slots for reading change histories; an idle host "
        "has no limit.",
    )
    backfill_revisions: Count = key(
        50_000, "Most revisions read per page, newest first.", unit="revisions"
    )
    poll_share: Share = key(
        0.25, "Largest share of a host's slots for polling sources of hints; 0: no polling."
    )
    min_poll_s: PositiveSeconds = key(
        5.0,
        "Time between two polls of a mirrored wiki; longer where poll_share demands it.",
    )
    audit_share: Share = key(
        0.02,
        "Share of a host's slots for random visits that measure the freshness of its "
        "copies; 0: none.",
    )
    api_maxlag_s: PositiveSeconds = key(
        5.0, "Database lag of a wiki above which its API is not queried."
    )


class WebConfig(ConfigTable):
    """The mirror in a browser: read-only, without passwords; anyone who can connect can read it."""

    listen: ListenText | None = key(
        None,
        'Address to listen on: "127.0.0.1:8080", "[::1]:8080"; port 0: any free port; unset: off.',
        restart=True,
    )
    title: Annotated[str, Field(strict=True, max_length=100)] = key(
        "",
        "Name of the mirror on its pages; empty: it is named after its sites.",
        restart=True,
    )
    hosts: tuple[HostPattern, ...] = key(
        (),
        "Accepted host names, besides IP addresses, localhost and this machine's names: "
        '["*.example.org"], "*" for any. Others are refused, because anyone can point a domain '
        "at this machine.",
        restart=True,
    )
    public_url: PublicUrl | None = key(
        None,
        "Address at which people reach the mirror, for links in notifications and feeds: "
        '"https://mirror.example.org"; unset: no such links.',
    )
    banner: StrictBool = key(
        True,
        "Whether to show a line with source, time, revision and license on pages.",
        restart=True,
    )
    scripts: StrictBool = key(
        True,
        "Whether scripts of mirrored pages run, isolated: without storage or connections.",
        restart=True,
    )
    dashboard: Literal["loopback", "all", "off"] = key(
        "loopback",
        "Who may see the dashboard at /-/dashboard: loopback: browsers on this machine, not "
        "through a proxy; all: every reader of the mirror; off: nobody.",
        restart=True,
    )
    max_connections: Annotated[int, Field(strict=True, ge=1, le=20_000)] = key(
        1_024,
        "Most connections of readers; beyond it, the one that waits longest for its reader is "
        "closed, or the new one gets status 503.",
        unit="connections",
        restart=True,
    )
    max_client_connections: Annotated[int, Field(strict=True, ge=1, le=20_000)] = key(
        512,
        "Most connections of one address; a reverse proxy is one address.",
        unit="connections",
        restart=True,
    )
    max_waiting_bytes: Annotated[int, Field(strict=True, ge=MIB, le=2**40)] = key(
        64 * MIB,
        "Most bytes of pages that wait in memory for slow readers; beyond it, the slowest is cut; "
        "no more than a twentieth of max_memory.",
        restart=True,
    )


class ReplicasConfig(ConfigTable):
    """Replicas, hosts with the same pages as another host: how they are found and sampled."""

    prune: StrictBool = key(
        True,
        "Whether pages of replicas rest whose text the canonical host has at the same path; "
        "some are visited, to check that it still has.",
    )
    every_s: PositiveSeconds = key(3_600.0, "Pause between two searches for replicas.")
    storm_share: Share = key(
        0.05,
        "Largest share of all hosts, and of those of a domain (each counted as at least ten "
        "hosts), that one search may prune; the others wait for later searches, or for "
        "crawlctl replicas confirm --all.",
    )
    sample_pages: Annotated[int, Field(strict=True, ge=3, le=1_000)] = key(
        8,
        "Most pages of a replica visited per sampling, to check that they still agree.",
        unit="pages",
    )
    first_sample_s: PositiveSeconds = key(
        21_600.0, "Time until the first sampling of a few pages of a new replica."
    )
    sample_every_s: PositiveSeconds = key(
        7 * DAY_S,
        "Longest sampling interval of a replica; the more visits it saves, the shorter it is.",
    )
    prefer: tuple[HostName, ...] = key(
        (), 'Hosts that are always kept instead of their replicas: ["www.example.org"].'
    )


class Config(ConfigTable):
    """The whole config file."""

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
    mail: MailConfig = Field(default_factory=MailConfig)
    sites: tuple[SiteConfig, ...] = Field(default=(), alias="site")
    notify: tuple[NotifyConfig, ...] = Field(default=(), max_length=MAX_RULES)
    plugins: tuple[PluginConfig, ...] = Field(default=(), alias="plugin", max_length=MAX_PLUGINS)
