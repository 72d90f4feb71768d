"""The client side of the control socket."""

from __future__ import annotations

import os
from pathlib import Path

import httpx

from crawld.errors import CrawldError, OperatorError, UnreachableError

SOCKET_VARIABLE = "CRAWLD_SOCKET"
DEFAULT_SOCKET = Path("crawld.sock")

TIMEOUT_S = 60.0
"""How long a question may take; a command that waits for fetches takes as long as it takes."""


def socket_path(socket: Path | None, db: Path | None) -> Path:
    """Return where the control socket should be.

    Args:
        socket: the one named on the command line.
        db: the database named there; the daemon's socket lies beside it.
    """
    if socket is not None:
        return socket
    if named := os.environ.get(SOCKET_VARIABLE):
        return Path(named)
    return DEFAULT_SOCKET if db is None else db.with_suffix(".sock")


class Client:
    """A connection to one daemon; use it as a context manager."""

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
        """Ask, and return the JSON of the answer; parameters that are None are left out.

        Raises:
            UnreachableError: no daemon answers.
            OperatorError: the daemon refuses.
        """
        given = {name: str(value) for name, value in query.items() if value is not None}
        return self._send(self._http.build_request("GET", path, params=given))

    def post(self, path: str, form: dict[str, object], *, patient: bool = False) -> bytes:
        """Command, and return the JSON of the answer.

        Args:
            path: which command.
            form: its arguments; those that are None are left out.
            patient: whether to wait without a limit, as for a drain.

        Raises:
            UnreachableError: no daemon answers.
            OperatorError: the daemon refuses.
        """
        given = {name: value for name, value in form.items() if value is not None}
        timeout = httpx.Timeout(TIMEOUT_S, read=None) if patient else httpx.Timeout(TIMEOUT_S)
        return self._send(self._http.build_request("POST", path, json=given, timeout=timeout))

    def _send(self, request: httpx.Request) -> bytes:
        try:
            answer = self._http.send(request)
        except httpx.ConnectError as error:
            raise self._unreachable(error) from error
        except httpx.TimeoutException as error:
            raise UnreachableError(
                f"the daemon on {self.socket} does not answer", hint="look at its log"
            ) from error
        except httpx.TransportError as error:
            raise UnreachableError(
                f"what answers on {self.socket} went away or is no crawld: {error}",
                hint="name the daemon's socket: --socket PATH",
            ) from error
        if answer.is_success:
            return answer.content
        raise response_error(answer.status_code, answer.content)

    def _unreachable(self, error: httpx.ConnectError) -> UnreachableError:
        cause = _system_error(error)
        if isinstance(cause, PermissionError):
            hint = "only its owner and the group [daemon] socket_group may use it"
        else:
            hint = (
                "start one: crawld run -c FILE, or crawld mirror URL; "
                f"or name its socket: --socket PATH, --db FILE or {SOCKET_VARIABLE}"
            )
        why = f" ({cause.strerror or cause})" if cause else ""
        return UnreachableError(f"no daemon answers on {self.socket}{why}", hint=hint)


def _system_error(error: BaseException | None) -> OSError | None:
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def response_error(status: int, body: bytes) -> CrawldError:
    """Return the error that a status and its body stand for."""
    text, hint = _read_problem(body)
    if status in (404, 422):
        hint = ""  # it speaks to those who write programs
    if status >= 500 and status != 503:
        return CrawldError(
            f"the daemon failed at it (status {status}): {text}", hint="its log says where"
        )
    return OperatorError(text or f"refused with status {status}", hint=hint)


def _read_problem(body: bytes) -> tuple[str, str]:
    try:
        problem = httpx.Response(200, content=body).json()
    except ValueError:
        return body[:200].decode("utf-8", "replace"), ""
    if not isinstance(problem, dict):
        return str(problem), ""
    if isinstance(details := problem.get("detail"), list):
        # a form that does not fit: pydantic's list of places and reasons
        lines = [f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in details]
        return "\n".join(lines), ""
    return str(problem.get("error", problem)), str(problem.get("hint", ""))
