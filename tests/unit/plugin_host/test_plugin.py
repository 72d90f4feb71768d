"""One plug-in: failures that count, time, and growth of memory."""

from crawld.plugin_host.plugin import FAILED, FORGIVEN_CALLS, QUICK_S, Hook, Plugin


class GrowingMemory:
    """A process that grows with each look at it."""

    def __init__(self, step_bytes):
        self.now, self.step = 0, step_bytes

    def bytes(self):
        self.now += self.step
        return self.now


def test_the_last_failure_that_is_allowed_disables():
    told = []
    plugin = Plugin("p", "file", max_failures=3)
    plugin.on_failure = lambda *facts: told.append(facts[1:])
    hook = Hook(plugin, "weigh_page", lambda: 1 / 0)
    for _ in range(3):
        assert plugin.serves("s")
        assert hook.call("https://a.test/") is FAILED
    assert not plugin.serves("s")
    assert "3 failures, the last: weigh_page: ZeroDivisionError" in plugin.disabled
    assert told[0] == ("weigh_page", "https://a.test/", "ZeroDivisionError: division by zero")


def test_a_thousand_calls_without_one_take_a_failure_back():
    plugin = Plugin("p", "file", max_failures=3)
    good, bad = Hook(plugin, "a", lambda: 1), Hook(plugin, "b", lambda: 1 / 0)
    for _ in range(5):
        bad.call("")
        for _ in range(FORGIVEN_CALLS):
            good.call("")
    assert not plugin.disabled
    assert plugin.failures_in_all == 5
    assert plugin.failures <= 1


def test_time_is_counted_by_hook():
    hook = Hook(Plugin("p", "file"), "a", lambda: None)
    for _ in range(10):
        hook.call("")
    assert hook.figures.calls == 10
    assert 0.0 < hook.figures.longest_s <= hook.figures.total_s


def test_growth_disables_and_one_table_does_not():
    plugin = Plugin("p", "file", max_memory_bytes=10 << 20)
    plugin.memory = GrowingMemory(1 << 20)
    hook = Hook(plugin, "a", lambda: None)
    for _ in range(10):
        hook.call("")
    assert not plugin.disabled
    hook.call("")
    assert "made the process grow by about 11 MiB, more than 10 MiB" in plugin.disabled
    once = Plugin("p", "file", max_memory_bytes=10 << 20)
    once.memory = GrowingMemory(100 << 20)
    hook = Hook(once, "a", lambda: None)
    hook.call("")
    once.memory.step = 0
    for _ in range(50):
        hook.call("")
    assert not once.disabled


def test_it_serves_its_sites_only():
    plugin = Plugin("p", "file", sites=frozenset({"a"}))
    assert plugin.serves("a")
    assert not plugin.serves("b")


def test_one_long_call_alone_does_not_make_a_hook_slow():
    hook = Hook(Plugin("p", "file"), "a", lambda: None)

    def took(seconds):
        hook.calls += 1
        hook._count(seconds)
        return hook.level_s

    assert [took(0.0), took(2 * QUICK_S)] == [0.0, 0.0]
    assert took(2 * QUICK_S) == 2 * QUICK_S
    assert [took(0.0) for _ in range(60)][-1] < QUICK_S
    assert took(2 * QUICK_S) < QUICK_S
