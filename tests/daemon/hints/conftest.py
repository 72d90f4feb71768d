"""A desk of documents, and a daemon that mirrors what lies on it."""

import pytest

from tests.daemon.hints.document_server import Desk


@pytest.fixture
async def desk(nursery):
    """A web server whose documents the test lays out."""
    laid = Desk()
    await nursery.start(laid.serve)
    laid.put("/robots.txt", "User-agent: *\nDisallow: /hidden/\n", Content_Type="text/plain")
    laid.put("/", "<title>home</title><p>home")
    return laid
