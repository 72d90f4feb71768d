"""The causes that decide whether and when a URL is fetched. Light: the client imports it."""

from __future__ import annotations

from enum import StrEnum


class VisitCause(StrEnum):
    """Why a URL is (not) fetched; the first that applies decides."""

    PURGED = "purged"
    NO_SITE = "no_site"
    SITE_REMOVED = "site_removed"
    SCOPE = "scope"
    WIKI_PART = "wiki_part"
    TRAP = "trap"
    GROWTH = "growth"
    PLUGIN = "plugin"
    ROBOTS = "robots"
    REPLICA = "replica"
    DUPLICATE = "duplicate"
    CAP = "cap"
    UNKNOWN = "unknown"
    STOPPING = "stopping"
    EVERYTHING_PAUSED = "everything_paused"
    DISK = "disk"
    NETWORK_DOWN = "network_down"
    SITE_PAUSED = "site_paused"
    SITE_QUOTA = "site_quota"
    HOST_PAUSED = "host_paused"
    GONE = "gone"
    VISITED_ONCE = "visited_once"
    ROBOTS_UNREACHABLE = "robots_unreachable"
    HOST_CLOSED = "host_closed"
    QUIET_HOURS = "quiet_hours"
    RETRY = "retry"
    HOST_BACKOFF = "host_backoff"
    NO_ADDRESS = "no_address"
    QUARANTINED = "quarantined"
    REMOVED = "removed"
    REDIRECT = "redirect"
    HINTED = "hinted"
    NEVER_VISITED = "never_visited"
    RESTS = "rests"
    QUEUED = "queued"
    ROBOTS_UNREAD = "robots_unread"
    HOST_DELAY = "host_delay"
    SHARED_RATE = "shared_rate"


class Effect(StrEnum):
    """What a cause does: the URL is not fetched, it is fetched later, or it is fetched."""

    BLOCKS = "blocks"
    DELAYS = "delays"
    FETCHED = "fetched"
