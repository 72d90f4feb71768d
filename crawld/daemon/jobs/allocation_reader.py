"""Reads the models of pages for the `allocate` job, some whole hosts at a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Final

from crawld.core.change.model import PageModel
from crawld.core.change.record import Records
from crawld.core.revisit.host_allocation import AllocationPages
from crawld.core.revisit.registry import FOLLOW_FREQUENCIES
from crawld.daemon.crawl.context import BackgroundWork, CrawlContext
from crawld.daemon.crawl.policy_loader import ModelSlice, read_slice
from crawld.daemon.frontier.host import HostState
from crawld.daemon.pacing import Pace
from crawld.plugins import Estimator

REST_FACTOR: Final = 1.0
"""Rest after each slice, as a multiple of its work."""


class AllocationReader(BackgroundWork):
    """Reads and estimates models."""

    def __init__(self, context: CrawlContext, estimator: Estimator | None) -> None:
        """Take the estimator of a plug-in, for the rates of change; None: those of the models."""
        super().__init__(context)
        self._estimator = estimator

    async def groups(
        self, hosts: Iterable[int], *, at_once: float
    ) -> AsyncGenerator[tuple[AllocationPages, float], None]:
        """Yield the models of active sites on these hosts, some whole hosts at a time.

        Args:
            at_once: a group ends with the host that has its last so many pages.

        Yields:
            The pages, and when reading began (Unix seconds).
        """
        parts: list[AllocationPages] = []
        held, last_host, read_at = 0, None, self._clock.now()
        async with aclosing(self._parts(set(hosts))) as found:
            async for host_id, part in found:
                if held >= at_once and host_id != last_host:
                    next_at = self._clock.now()  # while a group is allocated, visits go on
                    yield await self._joined(parts), read_at
                    parts, held, read_at = [], 0, next_at
                parts.append(part)
                held, last_host = held + len(part.page), host_id
        if parts:
            yield await self._joined(parts), read_at

    async def _joined(self, parts: list[AllocationPages]) -> AllocationPages:
        return await self._workers.run(AllocationPages.joined, parts, abandon_on_cancel=True)

    async def _parts(self, wanted: set[int]) -> AsyncGenerator[tuple[int, AllocationPages], None]:
        """Yield the models of active sites host by host, with the number of the host."""
        by_id = {host.host_id: host for host in self._state.hosts.values()}
        for first, last in _runs(sorted(by_id), wanted):
            after: tuple[int, int] | None = (first - 1, 2**63 - 1)
            pace = Pace(REST_FACTOR)
            while after is not None:
                groups, after = await self._database.read(read_slice, after, last)
                for models in groups:
                    if models.site_id not in self._state.sites or models.host_id not in wanted:
                        continue
                    await self.estimate(models)
                    host = by_id.get(models.host_id)
                    if host is None or not follows_frequencies(host):
                        yield models.host_id, _pages_of(models, False)
                    else:  # a millisecond for 500 pages
                        yield models.host_id, await self._workers.run(_pages_of, models, True)
                await pace.rest()

    async def estimate(self, models: ModelSlice) -> None:
        """Give models the rates of the estimator, if a plug-in supplies one."""
        if self._estimator is not None:
            models.records = await self._workers.run(
                _with_rates, models.records, self._estimator, abandon_on_cancel=True
            )


def follows_frequencies(host: HostState) -> bool:
    """Whether some policy of a host follows frequencies."""
    return any(queue.policy_name in FOLLOW_FREQUENCIES for queue in host.pages.values())


def _with_rates(records: Records, estimator: Estimator) -> Records:
    """Return models with the rates of an estimator, per second."""
    models = [PageModel.from_bytes(record.tobytes()) for record in records]
    found = records.copy()
    found["rate"] = [estimator(model) for model in models]
    return found


def _pages_of(models: ModelSlice, follows: bool) -> AllocationPages:
    return AllocationPages.of_models(
        models.pages,
        models.records,
        models.weights,
        host=models.host_id,
        site=models.site_id,
        follows=follows,
    )


def _runs(known: Iterable[int], wanted: set[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of wanted numbers with no other known number between."""
    first = last = None
    for number in [*known, None]:
        if number is not None and number in wanted:
            first, last = (number if first is None else first), number
        elif first is not None and last is not None:
            yield first, last
            first = last = None
