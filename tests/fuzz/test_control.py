"""The control socket under requests that schemathesis makes from its OpenAPI.

schemathesis speaks TCP only: a relay on loopback passes each connection on to the real socket of a
real daemon. Every answer must be one that the OpenAPI declares, and none a server error.
"""

import contextlib
import socket
import threading

import pytest
from hypothesis import HealthCheck, given, settings

from tests.e2e.daemon_config import site, write_config
from tests.peer.crawld_process import with_crawld, with_simweb

EXAMPLES = 15
APART = ("/shutdown",)
"""Ends the daemon; the tests of the control socket have it."""


def pump(source, target):
    """Pass bytes on until either side ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def relayed(path):
    """Relay a free TCP port to a Unix socket; yield the base URL."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=pass_on, args=(client,), daemon=True).start()

        def pass_on(client):
            with client, socket.socket(socket.AF_UNIX) as server:
                server.connect(str(path))
                back = threading.Thread(target=pump, args=(server, client), daemon=True)
                back.start()
                pump(client, server)
                back.join()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A daemon with a few pages, and the URL of its relay."""
    folder = tmp_path_factory.mktemp("fuzzed")
    with contextlib.ExitStack() as stack:
        web = stack.enter_context(with_simweb(folder, "--host=a.test", "--pages=10"))
        crawld = stack.enter_context(with_crawld(folder / "crawld"))
        config = write_config(crawld, site(web.url("/", "a.test")), hosts=("a.test",))
        crawld.start("run", "-c", config)
        crawld.wait_until(lambda status: status["pages"]["visited"] == 10)
        yield crawld, stack.enter_context(relayed(crawld.socket))


def test_every_operation_answers_as_its_openapi_says(daemon):
    import schemathesis  # here, since each process of a parallel run imports this module
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks as conformance

    crawld, url = daemon
    schema = schemathesis.openapi.from_dict(crawld.get("/openapi.json"))
    asked = 0
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in APART:
            continue

        @settings(
            derandomize=True,
            database=None,
            max_examples=EXAMPLES,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case):
            response = case.call(base_url=url, timeout=60)
            case.validate_response(
                response,
                checks=(
                    not_a_server_error,
                    conformance.status_code_conformance,
                    conformance.response_schema_conformance,
                ),
            )

        ask()
        asked += 1
    assert asked > 30
    assert crawld.get("/status")["phase"] is not None
    assert crawld.terminate() == 0
    assert crawld.crawld("doctor", "--db", crawld.db).returncode == 0
