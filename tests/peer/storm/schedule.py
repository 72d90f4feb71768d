"""When which change comes in a storm."""

from __future__ import annotations

import random
from dataclasses import dataclass

EDIT_EVERY_S = 2.0
QUARTER_HOUR_S = 900.0
SHORT_S = 600.0

PER_QUARTER_HOUR = {
    "create": 4,
    "move": 8,
    "move_away": 4,
    "swap": 3,
    "delete": 10,
    "restore": 5,
    "upload": 3,
    "upload_again": 8,
    "import_page": 3,
    "import_revision": 2,
    "add_category": 6,
    "remove_category": 5,
    "label": 3,
    "style": 2,
    "double_redirect": 1,
    "retarget": 3,
    "template_5": 12,
}
"""Changes of each kind, besides edits; a shorter storm has at least one of each."""

MIDDLE_AT = (0.1, 0.35, 0.7)
"""Edits of the template of 50 pages, as shares of the storm; in a short storm only the first."""

WIDE_BEFORE_END_S = (660.0, 480.0)
"""Edits of the template of 200 pages, before the end; in a short storm in its first fifth."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change due `at` seconds after the start of the storm."""

    at: float
    kind: str


def make_schedule(storm_s: float, seed: int, *, once: bool = False) -> list[Change]:
    """Return all changes of a storm in order; `once`: one edit of each template of many pages."""
    rng = random.Random(seed)
    changes = [Change(n * EDIT_EVERY_S, "edit") for n in range(int(storm_s / EDIT_EVERY_S))]
    for kind, count in PER_QUARTER_HOUR.items():
        for _ in range(max(round(count * storm_s / QUARTER_HOUR_S), 1)):
            changes.append(Change(rng.uniform(0.02, 0.97) * storm_s, kind))
    # Something must be deleted before it can be restored.
    changes.append(Change(0.02 * storm_s, "delete"))
    middle = MIDDLE_AT if storm_s >= SHORT_S and not once else MIDDLE_AT[:1]
    changes += [Change(share * storm_s, "template_50") for share in middle]
    widest = WIDE_BEFORE_END_S[-1:] if once else WIDE_BEFORE_END_S
    wide = sorted({max(storm_s - before, 0.15 * storm_s) for before in widest})
    changes += [Change(at, "template_200") for at in wide]
    return sorted(changes, key=lambda change: change.at)
