"""Rebuild the change model of a page from its full history.

This runs on a database thread: a history of 50,000 revisions takes a tenth of a second, too long
for a visit to wait.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import apsw
import numpy as np
import trio
from tenacity import retry, retry_if_result, stop_after_attempt

from crawld.core.change.history import build_history
from crawld.core.change.model import PageModel
from crawld.core.change.refit import from_histories
from crawld.sources.mediawiki_history import RevisionKind, WikiRevision, revision_kinds
from crawld.store.changes import change
from crawld.store.changes import model as model_rows
from crawld.store.changes.change import Change, Kind
from crawld.store.engine.database import Database

MARKED_AT_ONCE = 5_000
"""Rows marked in one transaction; visits are committed in between."""

ATTEMPTS = 3
"""A visit may change the model meanwhile; then it is rebuilt from the new state."""


@dataclass(frozen=True, slots=True)
class RebuiltModel:
    """A model rebuilt from a history.

    Attributes:
        before: the stored model that it replaces, None if there was none.
        record: its stored form, None if no change is known.
        marks: changes whose stored kind has to be updated.
    """

    before: bytes | None
    record: bytes | None
    marks: tuple[tuple[Change, Kind | None], ...]


@retry(
    retry=retry_if_result(operator.not_),
    stop=stop_after_attempt(ATTEMPTS),
    sleep=trio.sleep,
    retry_error_callback=lambda _: False,
)
async def rebuild(database: Database, page_id: int, until: float) -> bool:
    """Rebuild the model of a page whose changes up to a time are all stored.

    Return False if visits changed the model during every attempt.
    """
    rebuilt = await database.read(rebuilt_model, page_id, until)
    for start in range(0, len(rebuilt.marks), MARKED_AT_ONCE):
        marks = rebuilt.marks[start : start + MARKED_AT_ONCE]
        await database.write(change.set_kinds, page_id, marks)
    return rebuilt.record is None or await database.write(_put, page_id, rebuilt)


def _put(connection: apsw.Connection, page_id: int, rebuilt: RebuiltModel) -> bool:
    """Store a model unless a visit changed the one it was made from."""
    if rebuilt.record is None or model_rows.of_page(connection, page_id) != rebuilt.before:
        return False
    model_rows.put(connection, page_id, rebuilt.record)
    return True


def rebuilt_model(connection: apsw.Connection, page_id: int, until: float) -> RebuiltModel:
    """Return the model from the changes of a page, which are complete up to `until`."""
    changes = change.list_changes(connection, page_id)
    revisions = [each for each in changes if each.source == "revision"]
    found = revision_kinds([_revision(each) for each in revisions])
    marks = [(each, kind) for each, kind in zip(revisions, found, strict=True) if kind != each.kind]
    changed_at = [
        *(each.changed_at for each in changes if each.source == "log"),
        # A revision without a text change is no change to a visit.
        *(each.changed_at for each, kind in zip(revisions, found, strict=True) if kind != "null"),
    ]
    before = model_rows.of_page(connection, page_id)
    return RebuiltModel(before, _model(changed_at, until, before), tuple(marks))


def _revision(row: Change) -> WikiRevision:
    kind: RevisionKind | None = "revert" if row.kind == "revert" else None
    return WikiRevision(row.revision_id, row.changed_at, row.size_bytes, row.digest, kind)


def _model(changed_at: Sequence[float], until: float, before: bytes | None) -> bytes | None:
    times = build_history(np.array(changed_at, np.float64), now=until).changed_at
    if not times.size:
        return None
    records = from_histories(times, np.array([0, times.size]), at=until)
    model = PageModel.from_bytes(records[0].tobytes())
    if before is not None:
        # Keep the counts that only visits collect.
        known = PageModel.from_bytes(before)
        model.visits, model.changed_visits = known.visits, known.changed_visits
        model.modified_kept, model.modified_broken = known.modified_kept, known.modified_broken
        model.prior = known.prior
        model.rate = model.posterior().mean
    return model.to_bytes()
