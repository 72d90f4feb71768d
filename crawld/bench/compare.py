"""Compares a result of `crawld bench` with an earlier one.

Only ratios to peers measured in the same run are compared: the speed of machines differs, and that
of one machine from day to day.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crawld.errors import OperatorError


class RatioChange(NamedTuple):
    """A ratio in two results; above 1 crawld is better than the peer.

    Attributes:
        name: of the ratio, after that of its benchmark.
        before: in the earlier result; None: it was not measured.
        now: in this one; None: it is not measured any more.
    """

    name: str
    before: float | None
    now: float | None

    @property
    def quotient(self) -> float | None:
        """How much better it is now; None without both."""
        return self.now / self.before if self.before and self.now is not None else None


def read_result(path: Path) -> dict[str, Any]:
    """Read what `crawld bench --json` printed.

    Raises:
        OperatorError: the file is missing, or not such a result.
    """
    hint = "crawld bench NAME --json writes such a file"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OperatorError(f"{path}: {error}", hint=hint) from error
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise OperatorError(f"{path} is not a result of a benchmark", hint=hint)
    return value


def changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[RatioChange]:
    """Return the ratios of the benchmarks that both results have, in the order of the later one.

    Each is the result of one benchmark, or of all.
    """
    before, after = _ratios(earlier), _ratios(now)
    found = []
    for name in after:
        if name in before:
            keys = dict.fromkeys((*after[name], *before[name]))
            found += [
                RatioChange(f"{name} {key}", before[name].get(key), after[name].get(key))
                for key in keys
            ]
    return found


def changes_text(found: list[RatioChange]) -> str:
    """Return changes as a table."""
    lines = [f"{'ratio':<56}{'before':>10}{'now':>10}{'change':>9}"]
    for each in found:
        cells = [_cell(each.before), _cell(each.now), _cell(each.quotient)]
        lines.append(f"{each.name:<56}{cells[0]:>10}{cells[1]:>10}{cells[2]:>9}")
    return "\n".join(lines)


def _cell(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.3g}"


def _ratios(value: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the ratios of a result by benchmark."""
    results = value["results"].values() if value["name"] == "all" else [value]
    return {each["name"]: each["ratios"] for each in results}
