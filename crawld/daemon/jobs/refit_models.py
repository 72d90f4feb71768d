"""The `estimate` job: refit the change models, with priors per host, section and site.

Models are read host by host in slices and refitted on a reader's thread (`core/change/refit.py`).
Models that changed, or have the former version, are written back, unless a visit changed them
meanwhile. A host larger than a
slice is fitted slice by slice: thousands of pages give the same prior as all of them.

Then the models of each site are fitted to a sample of its histories (`core/change/site_model.py`),
if enough is new since the last fit; the self-exciting one more often than the other.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import apsw
import numpy as np
import numpy.typing as npt

from crawld.core.change.prior import Gamma
from crawld.core.change.record import RECORD_DTYPE, Records, is_current, upgraded
from crawld.core.change.refit import refit
from crawld.core.change.section import group_pages, section_of
from crawld.core.change.shared_dates import without_shared_dates
from crawld.core.change.site_model import (
    FIT_EVERY_S,
    SAMPLE_NEWEST,
    SAMPLE_PAGES,
    LastFit,
    fit_sample,
)
from crawld.core.url import target_of
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.frontier.host import HostState
from crawld.daemon.pacing import Pace, parts_of
from crawld.daemon.site_models import read_site_model
from crawld.store.changes import model
from crawld.store.changes.model import BEFORE_FIRST, ModelRow, PageKey, RefittedModel

FIRST_S: Final = 600.0
"""Pause between two runs, doubled from the first to `FIT_EVERY_S`: priors of a new mirror settle
within minutes and hardly change after a day."""

SLICE: Final = 4096
"""Pages looked at in one slice, about 30 ms of work."""

MODELS_AT_ONCE: Final = 256
"""Models written in one transaction."""

MIN_CHANGE: Final = 0.02
"""A model is written back if its rate or its prior changed by more than this share."""

REST_FACTOR: Final = 2.0
"""Rest after each slice, as a multiple of its work."""

SAMPLE_HOSTS: Final = 50
"""Hosts that the sample of a site comes from."""


@dataclass(frozen=True, slots=True, eq=False)
class MovedModels:
    """Refitted models to write back: three arrays, since 4,000 objects each would take 2 MB.

    Attributes:
        page_ids: (n,) int64.
        before: (n,), in the current version; `former` has the stored form of those that had none.
        after: (n,), refitted.
        former: stored form by place.
    """

    page_ids: npt.NDArray[np.int64]
    before: Records
    after: Records
    former: Mapping[int, bytes]

    def parts(self) -> Iterator[list[RefittedModel]]:
        """Yield the models of one transaction after the other."""
        for places in parts_of(range(len(self.page_ids)), MODELS_AT_ONCE):
            yield [
                RefittedModel(
                    int(self.page_ids[place]),
                    self.former.get(place) or self.before[place].tobytes(),
                    self.after[place].tobytes(),
                )
                for place in places
            ]


@dataclass(frozen=True, slots=True)
class RefitSlice:
    """The result of refitting some models.

    Attributes:
        moved: models to write back; None: none was read.
        priors: prior of the change rates of each host.
        section_priors: the same for sections with enough pages.
        pages: models that were fitted.
        up_to: key of the last page that was looked at; None: no page is left.
    """

    moved: MovedModels | None
    priors: list[tuple[int, Gamma]]
    section_priors: list[tuple[int, str, Gamma]]
    pages: int
    up_to: PageKey | None


class RefitModelsJob(BackgroundWork):
    """The `estimate` job."""

    name = "estimate"

    def __init__(
        self, context: CrawlContext, *, on_refitted: Callable[[], None] = lambda: None
    ) -> None:
        """Create the job; `on_refitted` is called after a run that changed models."""
        super().__init__(context)
        self._on_refitted = on_refitted
        self._pages = self._moved = self._sites = 0
        self._every_s = FIRST_S
        self._fitted: dict[int, LastFit] = {}

    @property
    def every_s(self) -> float:
        """Pause between two runs, seconds."""
        return self._every_s

    async def run(self) -> str:
        """Refit the models of all pages and sites; does nothing in a one-off mirror."""
        if self._state.settings.once:
            return "skipped in a one-off mirror"
        pages, moved, sites = self._pages, self._moved, self._sites
        await self._refit_all()
        if self._pages > pages:
            self._every_s = min(2.0 * self._every_s, FIT_EVERY_S)
        for site_id in sorted(self._state.sites):
            await self._fit_site(site_id)
        if (self._moved, self._sites) != (moved, sites):
            self._on_refitted()
        done = (self._pages - pages, self._moved - moved, self._sites - sites)
        return "{} models, {} changed, {} sites".format(*done)

    async def progress(self) -> dict[str, int]:
        """Return counts since the start."""
        return {"pages": self._pages, "moved": self._moved, "sites": self._sites}

    async def _refit_all(self) -> None:
        after: PageKey | None = BEFORE_FIRST
        pace = Pace(REST_FACTOR)
        while after is not None:
            found = await self._database.read(refit_slice, after)
            for part in found.moved.parts() if found.moved else ():
                self._moved += await self._database.write(model.put_refitted, part)
            if found.priors:
                await self._database.write(put_priors, found)
            self._pages += found.pages
            after = found.up_to
            await pace.rest()

    async def _fit_site(self, site_id: int) -> None:
        hosts = [host for host in self._state.hosts.values() if site_id in host.pages]
        sampled = hosts[:: -(-len(hosts) // SAMPLE_HOSTS)] if hosts else []
        histories: list[array[float]] = []
        until: list[float] = []
        for host in sampled:
            found = await self._database.read(
                model.known_changes,
                host.host_id,
                site_id,
                pages=SAMPLE_PAGES // len(sampled),
                newest=SAMPLE_NEWEST,
            )
            histories += [array("d", page.times) for page in found]
            until += [self._known_until(host, site_id, page) for page in found]
        at, changes = self._clock.now(), sum(map(len, histories))
        last = self._fitted.get(site_id, LastFit())
        of_both = last.is_due(changes, at)
        if not of_both and not last.is_hawkes_due(changes):
            return
        kept = None if of_both else (await read_site_model(self._database, site_id)).scale
        fit = partial(fit_sample, histories, until, scale=kept)
        fitted = await self._workers.run(fit, abandon_on_cancel=True)
        if fitted is None:
            return
        self._fitted[site_id] = last.followed_by(changes, at, of_both=of_both)
        await self._database.write(model.put_site, site_id, at, fitted.as_dict())
        self._sites += 1

    def _known_until(self, host: HostState, site_id: int, page: model.KnownChanges) -> float:
        now, until = self._clock.now(), page.last_visit_at
        if (pages := host.pages.get(site_id)) is not None:  # the site may have been removed since
            until = pages.known_until(page.page_id, until, now)
        # A wiki reports revisions before the visit. If the clock was set back, all this is later.
        return min(max(until, *page.times[-1:]), now)


class _ModelTable:
    """The models of a slice, column by column, without their URLs: as rows they take 2 MB.

    Attributes:
        page_ids, host_ids: of each model, host by host.
        sections: (host_id, section) of each; equal ones are one object.
        packed: the models one after the other, in the current version.
        former: stored form of the models that have the former version, by place.
    """

    def __init__(self) -> None:
        self.page_ids, self.host_ids = array("q"), array("q")
        self.sections: list[tuple[int, str]] = []
        self.packed = bytearray()
        self.former: dict[int, bytes] = {}
        self._known: dict[tuple[int, str], tuple[int, str]] = {}

    def add(self, rows: Iterable[ModelRow]) -> None:
        """Add the next models; those of an unknown version are left out."""
        for row in rows:
            record = upgraded(row.record)
            if not is_current(record):
                continue
            if record is not row.record:
                self.former[len(self.page_ids)] = row.record
            section = (row.host_id, section_of(target_of(row.url)))
            self.page_ids.append(row.page_id)
            self.host_ids.append(row.host_id)
            self.sections.append(self._known.setdefault(section, section))
            self.packed += record

    def drop_last_host(self, host_id: int) -> None:
        """Remove the models of the last host."""
        end = bisect_left(self.host_ids, host_id)
        del self.page_ids[end:], self.host_ids[end:], self.sections[end:]
        del self.packed[end * RECORD_DTYPE.itemsize :]
        self.former = {place: stored for place, stored in self.former.items() if place < end}


def refit_slice(connection: apsw.Connection, after: PageKey) -> RefitSlice:
    """Refit the next models, whole hosts if they fit; on a reader's thread."""
    table = _ModelTable()
    up_to: PageKey | None = after
    for _ in range(0, SLICE, MODELS_AT_ONCE):
        if up_to is not None:
            rows, up_to = model.batch(connection, after=up_to, limit=MODELS_AT_ONCE)
            table.add(rows)
    if up_to is not None and table.host_ids and table.host_ids[0] != up_to[0]:
        # The rest of the last host is read with its beginning.
        table.drop_last_host(up_to[0])
        up_to = (up_to[0], BEFORE_FIRST[1])
    if not table.page_ids:
        return RefitSlice(None, [], [], 0, up_to)
    return RefitSlice(*_refit_table(table), len(table.page_ids), up_to)


def put_priors(connection: apsw.Connection, found: RefitSlice) -> None:
    """Store the priors that new pages of these hosts and sections start from."""
    model.put_priors(connection, found.priors)
    model.put_section_priors(connection, found.section_priors)


def _refit_table(
    table: _ModelTable,
) -> tuple[MovedModels, list[tuple[int, Gamma]], list[tuple[int, str, Gamma]]]:
    before = np.frombuffer(table.packed, RECORD_DTYPE)
    hosts, groups = np.unique(np.frombuffer(table.host_ids, np.int64), return_inverse=True)
    dated = without_shared_dates(before, groups)
    sections = group_pages(table.sections)
    number = {section: index for index, section in enumerate(dict.fromkeys(sections))}
    fitted = refit(dated, groups=np.array([number[section] for section in sections]))
    after = fitted.records
    # New pages of small sections start from the prior of the whole host: the rest of the host, as
    # a group, may be only a page or two.
    of_hosts = refit(dated, groups=groups).priors
    moved = after["exact_changes"] != before["exact_changes"]
    moved[list(table.former)] = True
    for name in ("rate", "prior_shape", "prior_exposure_s"):
        moved |= np.abs(after[name] - before[name]) > MIN_CHANGE * np.abs(before[name])
    places = np.flatnonzero(moved)
    models = MovedModels(
        np.frombuffer(table.page_ids, np.int64)[places],
        before[places],
        after[places],
        {
            at: table.former[place]
            for at, place in enumerate(places.tolist())
            if place in table.former
        },
    )
    priors = [(host, of_hosts[group]) for group, host in enumerate(hosts.tolist())]
    of_sections = [(*key, fitted.priors[group]) for key, group in number.items() if key[1]]
    return models, priors, of_sections
