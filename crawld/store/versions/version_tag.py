"""Tags: short texts that plug-ins keep with a copy; deleted with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import apsw


class VersionTag(NamedTuple):
    """A text that a plug-in keeps with a copy."""

    plugin: str
    name: str
    value: str


def put(connection: apsw.Connection, version_id: int, tags: Sequence[VersionTag]) -> None:
    """Store the tags of a new copy."""
    connection.executemany(
        "INSERT OR REPLACE INTO version_tag (version_id, plugin, name, value) VALUES (?, ?, ?, ?)",
        [(version_id, *tag) for tag in tags],
    )


def of_version(connection: apsw.Connection, version_id: int) -> Mapping[str, Mapping[str, str]]:
    """Return the tags of a copy by plug-in and name."""
    found: dict[str, dict[str, str]] = {}
    rows = connection.execute(
        "SELECT plugin, name, value FROM version_tag WHERE version_id = ?", (version_id,)
    )
    for plugin, name, value in rows:
        found.setdefault(str(plugin), {})[str(name)] = str(value)
    return found


def flat(tags: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Return tags by `PLUGIN.NAME`."""
    return {
        f"{plugin}.{name}": value for plugin, own in tags.items() for name, value in own.items()
    }


def of_versions(
    connection: apsw.Connection, version_ids: Sequence[int]
) -> dict[int, dict[str, str]]:
    """Return the tags of those copies that have any, by version_id and `PLUGIN.NAME`."""
    found = {each: flat(of_version(connection, each)) for each in version_ids}
    return {each: tags for each, tags in found.items() if tags}
