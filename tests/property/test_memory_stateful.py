"""The memory pool under any order of growing, shrinking, giving up and trimming."""

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawld.memory import MemoryPool, MemoryShortage

SIZE, LARGEST, HOLDERS = 100, 40, 6

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(0, HOLDERS - 1), st.integers(1, LARGEST)),
        st.tuples(st.just("shrink"), st.integers(0, HOLDERS - 1), st.integers(0, LARGEST)),
        st.tuples(st.just("cancel"), st.integers(0, HOLDERS - 1), st.just(0)),
        st.tuples(st.just("trim"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


class Holders:
    """Tasks that hold leases; a task that waits takes no other step than to give up."""

    def __init__(self, nursery, *, stale):
        on_stale = (lambda: None) if stale else None
        self.pool = MemoryPool(SIZE, largest_bytes=LARGEST, max_waiting=HOLDERS, on_stale=on_stale)
        self.leases = [self.pool.lease(f"h{number % 3}.test") for number in range(HOLDERS)]
        self.waits = [None] * HOLDERS
        self.nursery = nursery

    async def grow(self, holder, size_bytes):
        scope = self.waits[holder] = trio.CancelScope()
        with scope:
            try:
                await self.leases[holder].grow(size_bytes)
                assert self.leases[holder].held_bytes >= size_bytes
            except MemoryShortage:
                pytest.fail("no more than all can wait")
        self.waits[holder] = None

    async def step(self, kind, holder, size_bytes):
        if kind == "trim":
            self.pool.trimmed(self.pool.stale_bytes)
        elif kind == "cancel":
            if self.waits[holder] is not None:
                self.waits[holder].cancel()
        elif self.waits[holder] is None:
            if kind == "grow":
                self.nursery.start_soon(self.grow, holder, size_bytes)
            else:
                self.leases[holder].shrink(size_bytes)
        await trio.testing.wait_all_tasks_blocked()
        self.check()

    def check(self):
        pool = self.pool
        assert pool.used_bytes == sum(lease.held_bytes for lease in self.leases)
        assert 0 <= pool.used_bytes + pool.stale_bytes <= SIZE
        assert all(0 <= lease.held_bytes <= LARGEST for lease in self.leases)
        waiting = [holder for holder in range(HOLDERS) if self.waits[holder] is not None]
        assert pool.waiting == len(waiting)
        if waiting and not pool.stale_bytes:
            # Whoever has all it wants can reach the end, and somebody does.
            assert len(waiting) < HOLDERS
            assert any(
                lease.held_bytes and LARGEST - lease.held_bytes <= pool.room_bytes
                for holder, lease in enumerate(self.leases)
                if holder not in waiting
            )

    async def finish(self):
        """Let all who do not wait end, again and again, until none is left."""
        for _ in range(HOLDERS):
            self.pool.trimmed(self.pool.stale_bytes)
            for holder, lease in enumerate(self.leases):
                if self.waits[holder] is None:
                    lease.release()
            self.pool.trimmed(self.pool.stale_bytes)
            await trio.testing.wait_all_tasks_blocked()
        assert (self.pool.waiting, self.pool.used_bytes) == (0, 0)


@given(steps=STEPS, stale=st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_limit_holds_nobody_waits_for_ever_and_all_comes_back(steps, stale):
    async def run():
        async with trio.open_nursery() as nursery:
            holders = Holders(nursery, stale=stale)
            for step in steps:
                await holders.step(*step)
            await holders.finish()

    trio.run(run)
