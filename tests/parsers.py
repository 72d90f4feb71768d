"""The parsers of HTTP/1.1, for tests that run with each of them."""

import pytest

from crawld.net import transport
from crawld.net.http1 import Http1Connection


def use_parser(name, monkeypatch):
    """Let all fetchers of a test use h11, or llhttp where it is installed."""
    connection = Http1Connection
    if name == "llhttp":
        module = pytest.importorskip("crawld.net.http1_llhttp", exc_type=ImportError)
        connection = module.LlhttpConnection
    monkeypatch.setattr(transport, "http1_connection", connection)
