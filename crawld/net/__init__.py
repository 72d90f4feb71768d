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

__all__ = [
    "DEFAULT_LIMITS",
    "FetchFailure",
    "FetchLimits",
    "FetchRequest",
    "Fetched",
    "Headers",
    "header_value",
]
