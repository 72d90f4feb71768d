"""A document server for tests of hint sources."""

import pytest

from tests.daemon.hints.document_server import DocumentServer


@pytest.fixture
async def server(nursery):
    """A web server with documents that the test sets."""
    server = DocumentServer()
    await nursery.start(server.serve)
    server.put("/robots.txt", "User-agent: *\nDisallow: /hidden/\n", Content_Type="text/plain")
    server.put("/", "<title>home</title><p>home")
    return server
