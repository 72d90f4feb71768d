"""The memory budget: order, room kept back for the one that waits longest, bytes given back."""

import gc

import pytest
import trio
import trio.testing

from crawld.memory import (
    FETCH_BYTES,
    HEAP_BLOCK_BYTES,
    KEPT_DIVISOR,
    KIB,
    LEAST_BYTES,
    MIB,
    WAITER_BYTES,
    MemoryBudget,
    MemoryPool,
    MemoryShares,
    MemoryShortage,
)


def make_pool(size_bytes=100, *, largest_bytes=40, max_waiting=10, **more):
    return MemoryPool(size_bytes, largest_bytes=largest_bytes, max_waiting=max_waiting, **more)


class Growing:
    """Leases that grow in tasks of their own, and the order in which they are granted."""

    def __init__(self, pool, nursery):
        self.pool, self.nursery, self.granted = pool, nursery, []

    async def want(self, name, size_bytes, lease=None):
        """Let a lease grow in a task; return it as soon as it is granted or waits."""
        lease = lease or self.pool.lease()

        async def grow():
            await lease.grow(size_bytes)
            self.granted.append(name)

        self.nursery.start_soon(grow)
        await trio.testing.wait_all_tasks_blocked()
        return lease


@pytest.fixture
def growing(nursery):
    return lambda pool: Growing(pool, nursery)


async def test_a_lease_is_granted_while_there_is_room():
    pool = make_pool()
    lease = pool.lease()
    await lease.grow(30)
    assert (lease.held_bytes, pool.used_bytes, pool.room_bytes) == (30, 30, 70)
    lease.shrink(10)
    assert (lease.held_bytes, pool.used_bytes) == (10, 10)
    lease.release()
    lease.release()
    assert (lease.held_bytes, pool.used_bytes) == (0, 0)


async def test_a_lease_ends_with_its_holder():
    pool = make_pool()
    lease = pool.lease()
    await lease.grow(30)
    del lease
    gc.collect()
    assert pool.used_bytes == 0


async def test_nobody_gets_more_than_the_largest_size():
    lease = make_pool(largest_bytes=40).lease()
    await lease.grow(1000)
    assert lease.held_bytes == 40


async def test_those_who_wait_are_served_in_order(growing):
    leases = growing(make_pool(100, largest_bytes=40))
    first = await leases.want("first", 40)
    second = await leases.want("second", 20)
    favoured = await leases.want("favoured", 40)
    waiting = [await leases.want(size, size) for size in (30, 1, 20)]
    assert leases.granted == ["first", "second", "favoured"]
    assert leases.pool.waiting == 3
    first.release()
    await trio.testing.wait_all_tasks_blocked()
    assert leases.granted[3:] == [30]
    second.release()
    favoured.release()
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(leases.granted[3:]) == [1, 20, 30]
    assert [lease.held_bytes for lease in waiting] == [30, 1, 20]


async def test_small_wishes_pass_large_ones_that_wait(growing):
    leases = growing(make_pool(100, largest_bytes=40))
    held = [await leases.want(name, 40) for name in ("one", "two")]
    held.append(await leases.want("favoured", 20))
    for number in range(3):
        await leases.want(f"large {number}", 40, leases.pool.lease(f"large{number}.test"))
    await leases.want("small", 5, leases.pool.lease("small.test"))
    assert leases.granted == ["one", "two", "favoured"]
    held[0].release()
    await trio.testing.wait_all_tasks_blocked()
    assert leases.granted[3] == "small"


async def test_hosts_have_equal_shares_of_the_order(growing):
    leases = growing(make_pool(40, largest_bytes=40))
    held = await leases.want("held", 40)
    waiting = [await leases.want(f"a{n}", 20, leases.pool.lease("a.test")) for n in range(4)]
    waiting.append(await leases.want("b", 20, leases.pool.lease("b.test")))
    held.release()
    for lease in [*waiting, *waiting]:
        await trio.testing.wait_all_tasks_blocked()
        lease.release()
    await trio.testing.wait_all_tasks_blocked()
    assert leases.granted[1:3] == ["a0", "b"]
    assert leases.pool.waiting == 0


async def test_a_large_wish_is_passed_by_no_more_than_its_own_size(growing):
    leases = growing(make_pool(100, largest_bytes=40))
    held = [await leases.want(f"held {n}", 30) for n in range(2)]
    held.append(await leases.want("favoured", 40))
    await leases.want("large", 40, leases.pool.lease("large.test"))
    passed = 0
    while "large" not in leases.granted:
        small = await leases.want("small", 10, leases.pool.lease(f"s{passed}.test"))
        held.pop(0).release() if held else None
        await trio.testing.wait_all_tasks_blocked()
        passed += small.held_bytes > 0
        held.append(small)
        assert passed <= 8


class Receiving:
    """A body that is being received."""

    def __init__(self, pool, received_bytes):
        self.received_bytes = received_bytes
        self.lease = pool.lease(filling=self)
        self.evicted = 0

    def evict(self):
        self.evicted += 1
        self.lease.release()


async def test_slow_bodies_end_while_others_wait_the_largest_first(growing):
    leases = growing(make_pool(115, largest_bytes=40))
    bodies = [Receiving(leases.pool, 1_000) for _ in range(3)]
    sizes = (40, 20, 10)
    for body, size in zip(bodies, sizes, strict=True):
        await leases.want("body", size, body.lease)
    fast = Receiving(leases.pool, 1_000)
    await leases.want("body", 30, fast.lease)
    before = leases.pool.received()
    fast.received_bytes += 1
    assert leases.pool.evict_slow(before, 1.0) == 0  # nobody waits
    await leases.want("small", 15, leases.pool.lease("small.test"))
    assert leases.pool.evict_slow(before, 1.0) == 1
    assert [body.evicted for body in (*bodies, fast)] == [1, 0, 0, 0]
    await trio.testing.wait_all_tasks_blocked()
    assert leases.granted[-1] == "small"
    for body in bodies[1:]:
        body.received_bytes += 1  # enough to receive again within a minute what it holds
    held = [await leases.want(f"large {n}", 40) for n in range(2)]
    assert leases.pool.waiting == 1
    assert leases.pool.evict_slow(before, 1.0) == 0
    assert held


async def test_a_body_is_watched_as_long_as_the_others_before_it_is_called_slow(growing):
    leases = growing(make_pool(40, largest_bytes=40))
    before = leases.pool.received()
    body = Receiving(leases.pool, 1_000)
    await leases.want("body", 40, body.lease)
    await leases.want("waits", 40)
    assert leases.pool.evict_slow(before, 1.0) == 0
    assert leases.pool.evict_slow(leases.pool.received(), 1.0) == 1


async def test_the_favoured_lease_grows_past_those_who_wait(growing):
    leases = growing(make_pool(100, largest_bytes=40))
    others = [await leases.want(f"other {n}", 30) for n in range(2)]
    favoured = await leases.want("favoured", 20)
    await leases.want("waiting", 10)
    await leases.want("grown", 40, favoured)
    assert leases.granted == ["other 0", "other 1", "favoured", "grown"]
    assert (leases.pool.used_bytes, leases.pool.waiting) == (100, 1)
    others.clear()
    await trio.testing.wait_all_tasks_blocked()
    assert leases.granted[-1] == "waiting"


async def test_leases_that_grow_together_all_reach_the_largest_size(nursery):
    pool = make_pool(100, largest_bytes=40, max_waiting=50)
    reached = []

    async def hold(name):
        lease = pool.lease()
        for size_bytes in range(1, 41):
            await lease.grow(size_bytes)
            await trio.lowlevel.checkpoint()
        reached.append(name)
        lease.release()

    with trio.fail_after(10):
        async with trio.open_nursery() as holders:
            for name in range(50):
                holders.start_soon(hold, name)
    assert sorted(reached) == list(range(50))
    assert (pool.used_bytes, pool.waiting) == (0, 0)


async def test_a_lease_that_gives_up_lets_the_next_one_pass(growing):
    leases = growing(make_pool(100, largest_bytes=40))
    held = [await leases.want(f"held {n}", size) for n, size in enumerate((30, 30, 30))]
    held[0].shrink(10)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as inner:
            await Growing(leases.pool, inner).want("large", 40)
            small = await leases.want("small", 5)
            assert leases.pool.waiting == 2
            scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert small.held_bytes == 5
    assert leases.pool.waiting == 0


async def test_too_many_who_wait_are_refused(growing):
    leases = growing(make_pool(40, largest_bytes=40, max_waiting=1))
    held = [await leases.want("held", 40), await leases.want("waits", 40)]
    with pytest.raises(MemoryShortage):
        await leases.pool.lease().grow(1)
    assert held[1].held_bytes == 0


async def test_stale_bytes_are_no_room_until_they_are_returned(growing):
    asked = []
    leases = growing(make_pool(100, largest_bytes=40, on_stale=lambda: asked.append(1)))
    for name in ("one", "two"):
        (await leases.want(name, 40)).release()
    assert (leases.pool.used_bytes, leases.pool.stale_bytes) == (0, 80)
    asked.clear()
    lease = await leases.want("waits", 40)
    assert (lease.held_bytes, len(asked)) == (0, 1)
    leases.pool.trimmed(80)
    await trio.testing.wait_all_tasks_blocked()
    assert (lease.held_bytes, leases.pool.stale_bytes) == (40, 0)


async def test_bytes_that_return_by_themselves_are_never_stale():
    pool = make_pool(on_stale=lambda: None, mapped_bytes=30)
    for size_bytes in (30, 29):
        lease = pool.lease()
        await lease.grow(size_bytes)
        lease.release()
    assert pool.stale_bytes == 29


@pytest.mark.parametrize("limit_mb", [64, 100, 256, 512, 4096, 2**20])
@pytest.mark.parametrize("in_flight", [1, 512, 20_000])
@pytest.mark.parametrize("has_readers", [False, True])
def test_shares_are_no_more_than_the_limit(limit_mb, in_flight, has_readers):
    shares = MemoryShares.of(limit_mb * MIB, in_flight, has_readers=has_readers)
    fixed = shares.max_in_flight * FETCH_BYTES + shares.max_waiting * WAITER_BYTES
    parts = (
        fixed
        + shares.records_bytes
        + shares.robots_bytes
        + shares.replies_bytes
        + shares.bodies_bytes
        + shares.analyses_bytes
    )
    assert shares.limit_bytes == limit_mb * MIB
    assert parts == shares.limit_bytes - shares.limit_bytes // KEPT_DIVISOR
    assert 1 <= shares.max_in_flight <= in_flight
    assert shares.max_waiting >= 1
    assert shares.bodies_bytes >= limit_mb * MIB / 5
    assert shares.analyses_bytes >= limit_mb * MIB / 5
    assert (shares.replies_bytes > 0) == has_readers


def test_fewer_fetches_are_in_flight_where_there_is_little_memory():
    assert MemoryShares.of(512 * MIB, 512).max_in_flight == 512
    assert MemoryShares.of(LEAST_BYTES, 512).max_in_flight == 64


def test_the_largest_body_fits_its_pool():
    small = MemoryBudget(MemoryShares.of(LEAST_BYTES, 512), max_body_bytes=64 * MIB)
    assert small.max_body_bytes < small.bodies.size_bytes < 32 * MIB
    large = MemoryBudget(MemoryShares.of(512 * MIB, 512), max_body_bytes=64 * MIB)
    assert large.max_body_bytes == 64 * MIB


async def test_stale_bytes_wait_for_a_while_unless_they_are_in_the_way(autojump_clock):
    shares = MemoryShares.of(LEAST_BYTES, 1)
    budget = MemoryBudget(shares, max_body_bytes=64 * MIB, returns_stale=True)

    async def release(size_bytes):
        lease = budget.analyses.lease()
        await lease.grow(size_bytes)
        lease.release()
        began_at = trio.current_time()
        await budget.wait_stale(5.0)
        budget.trimmed(*budget.begin_trim())
        return trio.current_time() - began_at

    assert await release(KIB) == pytest.approx(5.0)
    assert await release(shares.analyses_bytes // 2) == pytest.approx(0.0)
    assert budget.stale_bytes == 0


async def test_large_bodies_are_returned_by_the_system_itself():
    shares = MemoryShares.of(256 * MIB, 1)
    budget = MemoryBudget(shares, max_body_bytes=64 * MIB, returns_stale=True)
    for size_bytes in (HEAP_BLOCK_BYTES - 1, HEAP_BLOCK_BYTES):
        lease = budget.bodies.lease()
        await lease.grow(size_bytes)
        lease.release()
    assert budget.stale_bytes == HEAP_BLOCK_BYTES - 1
