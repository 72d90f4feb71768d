"""Reads responses of the daemon without its models, which take longer to load than a command runs.

Tables are typed by the models (`crawld/daemon/api/schemas`) and work with both.
"""

from __future__ import annotations

import json
from typing import Any

from crawld.errors import OperatorError


class Record(dict[str, Any]):
    """A JSON object whose members are attributes too.

    Members named like methods of dict are reached by `[]` only.
    """

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (as JSON is)
        if name in self:
            return self[name]
        if name.startswith("__"):
            raise AttributeError(name)
        raise OperatorError(
            f'the response of the daemon has no "{name}"',
            hint="the daemon and crawlctl are of different versions; restart the daemon",
        )


def read_response(body: bytes) -> Any:  # noqa: ANN401
    """Return the JSON of a response; its objects are records.

    Raises:
        OperatorError: it is not JSON.
    """
    try:
        return json.loads(body, object_hook=Record)
    except ValueError as error:
        raise OperatorError(
            f"the response is not JSON: {body[:80].decode('utf-8', 'replace')!r}",
            hint="is this the socket of a crawld daemon?",
        ) from error
