"""The path of the socket, and the errors of failed requests."""

import json
import socket
import threading
from pathlib import Path

import pytest

from crawld.cli.client import Client, response_error, socket_path
from crawld.errors import OperatorError, UnreachableError


@pytest.mark.parametrize(
    ("named", "variable", "db", "path"),
    [
        ("a.sock", "b.sock", "c.db", "a.sock"),
        (None, "b.sock", "c.db", "b.sock"),
        (None, None, "d/c.db", "d/c.sock"),
        (None, None, None, "crawld.sock"),
        (None, "", None, "crawld.sock"),
    ],
)
def test_socket_path(named, variable, db, path, monkeypatch):
    monkeypatch.delenv("CRAWLD_SOCKET", raising=False)
    if variable is not None:
        monkeypatch.setenv("CRAWLD_SOCKET", variable)
    found = socket_path(named and Path(named), db and Path(db))
    assert found == Path(path)


@pytest.mark.parametrize(
    ("status", "body", "code", "text"),
    [
        (409, {"error": "no such site", "hint": "known are: a"}, 2, "no such site\n  known are: a"),
        (404, {"error": "not known", "hint": "see /openapi.json"}, 2, "not known"),
        (503, {"error": "disk full"}, 2, "disk full"),
        (422, {"detail": [{"loc": ["body", "urls"], "msg": "too short"}]}, 2, "urls: too short"),
        (500, {"error": "oops"}, 1, "the daemon failed (status 500): oops"),
        (400, ["odd"], 2, "['odd']"),
    ],
)
def test_refusals(status, body, code, text):
    error = response_error(status, json.dumps(body).encode())
    assert error.exit_code == code
    assert str(error).startswith(text)


def test_a_refusal_without_json():
    assert str(response_error(404, b"<html>\xff")) == "<html>\N{REPLACEMENT CHARACTER}"
    assert isinstance(response_error(409, b""), OperatorError)


def unreachable(path):
    """Send a request to a socket without a daemon; return message and hint."""
    with pytest.raises(UnreachableError) as raised:
        Client(path).get("/status")
    return raised.value.message, raised.value.hint


@pytest.mark.parametrize(
    ("name", "why"),
    [("none.sock", "No such file"), ("file", "Connection refused"), ("l" * 120, "too long")],
)
def test_no_daemon_on_the_socket(name, why, tmp_path):
    (tmp_path / "file").write_text("")
    message, hint = unreachable(tmp_path / name)
    assert why in message
    assert str(tmp_path / name) in message
    assert "crawld run" in hint


@pytest.mark.parametrize("junk", [b"", b"220 smtp.example.org ready\r\n"])
def test_another_program_on_the_socket(junk, tmp_path):
    path = tmp_path / "other.sock"

    def respond():
        connected, _ = listening.accept()
        with connected:
            connected.recv(65536)
            connected.sendall(junk)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        other = threading.Thread(target=respond)
        other.start()
        message, _ = unreachable(path)
        other.join()
    assert "is not the socket of a crawld daemon" in message
