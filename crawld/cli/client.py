"""A client of the control socket."""

from __future__ import annotations

import os
from pathlib import Path

import httpx

from crawld.errors import CrawldError, OperatorError, UnreachableError

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
    """A connection to one daemon; a context manager."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._http = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(socket)),
            base_url="http://crawld",
            timeout=TIMEOUT_S,
            trust_env=False,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str, **query: object) -> bytes:
        """Send a GET request and return the response body; parameters of None are left out.

        Raises:
            UnreachableError: no daemon responds.
            OperatorError: the daemon refuses the request.
        """
        params = {name: str(value) for name, value in query.items() if value is not None}
        return self._send(self._http.build_request("GET", path, params=params))

    def post(self, path: str, form: dict[str, object], *, patient: bool = False) -> bytes:
        """Send a POST request and return the response body; arguments of None are left out.

        A `patient` request has no time limit for the response, as for a drain.

        Raises:
            UnreachableError: no daemon responds.
            OperatorError: the daemon refuses the request.
        """
        content = {name: value for name, value in form.items() if value is not None}
        timeout = httpx.Timeout(TIMEOUT_S, read=None) if patient else httpx.Timeout(TIMEOUT_S)
        return self._send(self._http.build_request("POST", path, json=content, timeout=timeout))

    def _send(self, request: httpx.Request) -> bytes:
        try:
            response = self._http.send(request)
        except httpx.ConnectError as error:
            raise self._unreachable(error) from error
        except httpx.TimeoutException as error:
            raise UnreachableError(
                f"the daemon on {self.socket} does not respond", hint="see its log"
            ) from error
        except httpx.TransportError as error:
            raise UnreachableError(
                f"{self.socket} is not the socket of a crawld daemon, or it closed: {error}",
                hint="give the socket of the daemon: --socket PATH",
            ) from error
        if response.is_success:
            return response.content
        raise response_error(response.status_code, response.content)

    def _unreachable(self, error: httpx.ConnectError) -> UnreachableError:
        cause = _system_error(error)
        if isinstance(cause, PermissionError):
            hint = "only the owner and the group in [daemon] socket_group may use it"
        else:
            hint = (
                "start one: crawld run -c FILE, or crawld mirror URL; "
                f"or give its socket: --socket PATH, --db FILE or {SOCKET_VARIABLE}"
            )
        why = f" ({cause.strerror or cause})" if cause else ""
        return UnreachableError(f"no daemon responds on {self.socket}{why}", hint=hint)


def _system_error(error: BaseException | None) -> OSError | None:
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


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
        problem = httpx.Response(200, content=body).json()
    except ValueError:
        return body[:200].decode("utf-8", "replace"), ""
    if not isinstance(problem, dict):
        return str(problem), ""
    if isinstance(details := problem.get("detail"), list):
        # a form that fails validation: pydantic's list of fields and messages
        lines = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in details]
        return "\n".join(lines), ""
    return str(problem.get("error", problem)), str(problem.get("hint", ""))
