"""The lines of a config file that explain a decision about a URL.

The file may have changed since it was loaded: a line is named only if the value there is the one in
force.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crawld.config.load import MAX_CONFIG_BYTES
from crawld.config.positions import KeyPath, key_lines
from crawld.core.why.facts import ConfigPlace


@dataclass(frozen=True, slots=True)
class ConfigPlaces:
    """The lines of the keys of one config file.

    Attributes:
        file: its path as given.
        document: its parsed content.
        lines: the line of each key.
    """

    file: str
    document: Mapping[str, object]
    lines: Mapping[KeyPath, int]

    def site(self, name: str) -> ConfigPlace | None:
        """Return the line of the block of a site; None if the file has none."""
        index = self._index(name)
        return None if index is None else self._place(("site", index))

    def site_key(self, name: str, *key: str | int, value: object = None) -> ConfigPlace | None:
        """Return the line of a key of a site or of an element of it; else that of the site.

        Args:
            value: the value in force; None: any.
        """
        index = self._index(name)
        if index is None:
            return None
        path = ("site", index, *key)
        if path in self.lines and (value is None or self._value(path) == value):
            return self._place(path)
        return self._place(("site", index))

    def _index(self, name: str) -> int | None:
        sites = self.document.get("site")
        for index, site in enumerate(sites if isinstance(sites, list) else ()):
            if isinstance(site, dict) and site.get("name") == name:
                return index
        return None

    def _value(self, path: KeyPath) -> object:
        value: object = self.document
        for part in path:
            if isinstance(value, Mapping):
                value = value.get(str(part))
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                return None
        return value

    def _place(self, path: KeyPath) -> ConfigPlace | None:
        line = self.lines.get(path)
        return None if line is None else ConfigPlace(self.file, line)


def read_places(path: Path) -> ConfigPlaces | None:
    """Return the lines of a config file; None if it cannot be read as one any more."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_CONFIG_BYTES).decode("utf-8-sig")
        return ConfigPlaces(str(path), tomllib.loads(text), key_lines(text))
    except (OSError, ValueError, RecursionError):
        return None
