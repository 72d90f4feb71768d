"""Outbound sockets: names, addresses, connections, answers. No other room opens one."""

from crawld.net.exchange import (
    DEFAULT_LIMITS,
    Fetched,
    FetchFailure,
    FetchLimits,
    FetchRequest,
    Headers,
    header_value,
)
from crawld.net.fetcher import Fetcher
from crawld.net.outage import OutageDetector, network_evidence
from crawld.net.resolver import (
    CachedResolver,
    FixedResolver,
    NameserverLookup,
    ResolutionError,
    Resolver,
    SystemLookup,
)
from crawld.net.robots import RobotsAnswer, fetch_robots
from crawld.net.tls import client_context

__all__ = [
    "DEFAULT_LIMITS",
    "CachedResolver",
    "FetchFailure",
    "FetchLimits",
    "FetchRequest",
    "Fetched",
    "Fetcher",
    "FixedResolver",
    "Headers",
    "NameserverLookup",
    "OutageDetector",
    "ResolutionError",
    "Resolver",
    "RobotsAnswer",
    "SystemLookup",
    "client_context",
    "fetch_robots",
    "header_value",
    "network_evidence",
]
