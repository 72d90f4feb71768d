"""The `estimate` job: refit the change models, with priors per host, section and site.

Models are read host by host in slices and refitted on a reader's thread (`core/change/refit.py`).
Models that changed, or have the former version, are written back, unless a visit changed them
meanwhile. A host larger than a
slice is fitted slice by slice: thousands of pages give the same prior as all of them.

Then the models of each site are fitted to a sample of its histories (`core/change/site_model.py`),
if enough is new since the last fit; the self-exciting one more often than the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import apsw
import numpy as np

from crawld.core.change.prior import Gamma
from crawld.core.change.record import is_current, records_of, upgraded
from crawld.core.change.refit import refit
from crawld.core.change.section import group_pages
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
from crawld.daemon.pacing import Pace
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


@dataclass(frozen=True, slots=True)
class RefitSlice:
    """The result of refitting some models.

    Attributes:
        moved: models to write back.
        priors: prior of the change rates of each host.
        section_priors: the same for sections with enough pages.
        pages: models that were read.
        up_to: key of the last page that was looked at; None: no page is left.
    """

    moved: list[RefittedModel]
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
            for start in range(0, len(found.moved), MODELS_AT_ONCE):
                part = found.moved[start : start + MODELS_AT_ONCE]
                self._moved += await self._database.write(model.put_refitted, part)
            if found.priors:
                await self._database.write(put_priors, found)
            self._pages += found.pages
            after = found.up_to
            await pace.rest()

    async def _fit_site(self, site_id: int) -> None:
        hosts = [host for host in self._state.hosts.values() if site_id in host.pages]
        sampled = hosts[:: -(-len(hosts) // SAMPLE_HOSTS)] if hosts else []
        histories: list[list[float]] = []
        until: list[float] = []
        for host in sampled:
            found = await self._database.read(
                model.known_changes,
                host.host_id,
                site_id,
                pages=SAMPLE_PAGES // len(sampled),
                newest=SAMPLE_NEWEST,
            )
            histories += [page.times for page in found]
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


def refit_slice(connection: apsw.Connection, after: PageKey) -> RefitSlice:
    """Refit the next models, whole hosts if they fit; on a reader's thread."""
    rows, up_to = model.batch(connection, after=after, limit=SLICE)
    if up_to is not None and rows and rows[0].host_id != up_to[0]:
        # The rest of the last host is read with its beginning.
        rows = [row for row in rows if row.host_id != up_to[0]]
        up_to = (up_to[0], BEFORE_FIRST[1])
    readable = [row for row in rows if is_current(upgraded(row.record))]
    if not readable:
        return RefitSlice([], [], [], len(rows), up_to)
    return RefitSlice(*_refit_rows(readable), len(rows), up_to)


def put_priors(connection: apsw.Connection, found: RefitSlice) -> None:
    """Store the priors that new pages of these hosts and sections start from."""
    model.put_priors(connection, found.priors)
    model.put_section_priors(connection, found.section_priors)


def _refit_rows(
    rows: list[ModelRow],
) -> tuple[list[RefittedModel], list[tuple[int, Gamma]], list[tuple[int, str, Gamma]]]:
    before = records_of(upgraded(row.record) for row in rows)
    hosts, groups = np.unique([row.host_id for row in rows], return_inverse=True)
    dated = without_shared_dates(before, groups)
    sections = group_pages((row.host_id, target_of(row.url)) for row in rows)
    number = {section: index for index, section in enumerate(dict.fromkeys(sections))}
    fitted = refit(dated, groups=np.array([number[section] for section in sections]))
    after = fitted.records
    # New pages of small sections start from the prior of the whole host: the rest of the host, as
    # a group, may be only a page or two.
    of_hosts = refit(dated, groups=groups).priors
    moved = np.array([not is_current(row.record) for row in rows])
    moved |= after["exact_changes"] != before["exact_changes"]
    for name in ("rate", "prior_shape", "prior_exposure_s"):
        moved |= np.abs(after[name] - before[name]) > MIN_CHANGE * np.abs(before[name])
    models = [
        RefittedModel(rows[index].page_id, rows[index].record, after[index].tobytes())
        for index in np.flatnonzero(moved).tolist()
    ]
    priors = [(host, of_hosts[group]) for group, host in enumerate(hosts.tolist())]
    of_sections = [(*key, fitted.priors[group]) for key, group in number.items() if key[1]]
    return models, priors, of_sections
