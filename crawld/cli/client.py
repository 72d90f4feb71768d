"""A client of the control socket."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import urlencode

from crawld.errors import CrawldError, OperatorError, UnreachableError
from crawld.net.unix_http import UnixHttpError, send_request

SOCKET_VARIABLE = "CRAWLD_SOCKET"
DEFAULT_SOCKET = Path("crawld.sock")

TIMEOUT_S = 60.0
"""Timeout of a request; a command that waits for fetches reads without a limit."""


def socket_path(socket: Path | None, db: Path | None) -> Path:
    """Return the control socket: `--socket`, else `CRAWLD_SOCKET`, else next to the database."""
    if socket is not None:
        return socket
    if from_environment := os.environ.get(SOCKET_VARIABLE):
        return Path(from_environment)
    return DEFAULT_SOCKET if db is None else db.with_suffix(".sock")


class Client:
    """Sends requests to one daemon."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket

    def get(self, path: str, **query: object) -> bytes:
        """Send a GET request and return the response body; parameters of None are left out.

        Raises:
            UnreachableError: no daemon responds.
            OperatorError: the daemon refuses the request.
        """
        params = {name: str(value) for name, value in query.items() if value is not None}
        return self._send("GET", f"{path}?{urlencode(params)}" if params else path)

    def post(self, path: str, form: dict[str, object], *, patient: bool = False) -> bytes:
        """Send a POST request and return the response body; arguments of None are left out.

        A `patient` request has no time limit for the response, as for a drain.

        Raises:
            UnreachableError: no daemon responds.
            OperatorError: the daemon refuses the request.
        """
        content = {name: value for name, value in form.items() if value is not None}
        body = json.dumps(content).encode()
        return self._send("POST", path, body, timeout_s=None if patient else TIMEOUT_S)

    def _send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        timeout_s: float | None = TIMEOUT_S,
    ) -> bytes:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        try:
            response = send_request(self.socket, method, target, body, headers, timeout_s=timeout_s)
        except TimeoutError as error:
            raise UnreachableError(
                f"the daemon on {self.socket} does not respond", hint="see its log"
            ) from error
        except UnixHttpError as error:
            raise UnreachableError(
                f"{self.socket} is not the socket of a crawld daemon, or it closed: {error}",
                hint="give the socket of the daemon: --socket PATH",
            ) from error
        except OSError as error:
            raise self._unreachable(error) from error
        if 200 <= response.status < 300:
            return response.body
        raise response_error(response.status, response.body)

    def _unreachable(self, error: OSError) -> UnreachableError:
        if isinstance(error, PermissionError):
            hint = "only the owner and the group in [daemon] socket_group may use it"
        else:
            hint = (
                "start one: crawld run -c FILE, or crawld mirror URL; "
                f"or give its socket: --socket PATH, --db FILE or {SOCKET_VARIABLE}"
            )
        why = error.strerror or error
        return UnreachableError(f"no daemon responds on {self.socket} ({why})", hint=hint)


def response_error(status: int, body: bytes) -> CrawldError:
    """Return the error for the status and the body of a failed request."""
    text, hint = _read_problem(body)
    if status in (404, 422):
        hint = ""  # hints of this kind are for programmers, not operators
    if status >= 500 and status != 503:
        return CrawldError(
            f"the daemon failed (status {status}): {text}", hint="its log has the traceback"
        )
    return OperatorError(text or f"the daemon refused with status {status}", hint=hint)


def _read_problem(body: bytes) -> tuple[str, str]:
    """Return the message and the hint of an error response."""
    try:
        problem = json.loads(body)
    except ValueError:
        return body[:200].decode("utf-8", "replace"), ""
    if not isinstance(problem, dict):
        return str(problem), ""
    if isinstance(details := problem.get("detail"), list):
        # a form that fails validation: pydantic's list of fields and messages
        lines = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in details]
        return "\n".join(lines), ""
    return str(problem.get("error", problem)), str(problem.get("hint", ""))
