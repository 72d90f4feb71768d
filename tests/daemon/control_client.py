"""Requests to the control socket of a daemon."""

import httpx

from tests.daemon.harness import TIMEOUT_S


def control_client(running):
    """Return a client of the control socket of a running daemon.

    It reads no certificates, which takes 50 ms.
    """
    transport = httpx.AsyncHTTPTransport(uds=str(running.socket_path), verify=False)
    return httpx.AsyncClient(transport=transport, base_url="http://crawld", timeout=TIMEOUT_S)


async def get(running, path, **query):
    """Send a GET request to the control socket; return the response."""
    async with control_client(running) as client:
        return await client.get(path, params=query)


async def post(running, path, **form):
    """Send a POST request with a JSON body to the control socket; return the response."""
    async with control_client(running) as client:
        return await client.post(path, json=form)
