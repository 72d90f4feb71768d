"""One plug-in in use: its hooks, what they cost, its failures, and when it is disabled.

Every call of a plug-in's code goes through `Hook.run`, which counts time, failures and memory.
What went wrong is a value for the caller (`FAILED`), never an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from crawld.plugin_host.loop_guard import HookTimeoutError, LoopGuard
from crawld.plugin_host.process_memory import ResidentMemory

SAMPLE_ONE_IN: Final = 16
"""Calls on the event loop of which one is measured for memory, after the first so many."""

MIN_GROWTHS: Final = 4
"""Measured calls that must have grown the process before a plug-in counts as leaking: a table that
it builds once is none."""

GROWTH_BYTES: Final = 64 * 1024
"""Growth of the process from which a measured call counts."""

LONG_S: Final = 0.005
"""Time of a call from which the stall meter keeps its name."""

FORGIVEN_CALLS: Final = 1_000
"""So many calls without a failure take one failure back."""

QUICK_S: Final = 0.002
"""Time of a call up to which it may run on the event loop."""

LONG_WITHIN: Final = 50
"""A call that is not quick counts if there was another among so many before it: once alone, another
program had the processor."""

LEVEL_KEPT: Final = 0.9
"""Share of the level of a hook's time that is left after each quicker call."""

MAX_WHY: Final = 300
"""Characters kept of the text of a failure."""


class Failed:
    """The answer of a call that failed."""


FAILED: Final = Failed()

OnFailure = Callable[["Plugin", str, str, str], None]
"""Is told of a failure: the plug-in, the hook, what it was called for, and why."""


def _ignore(plugin: Plugin, hook: str, where: str, why: str) -> None:
    """Ignore a failure."""


@dataclass(frozen=True, slots=True)
class HookFigures:
    """What a hook of a plug-in did since the start."""

    hook: str
    calls: int
    failures: int
    total_s: float
    longest_s: float


class Plugin:
    """A plug-in in use.

    Attributes:
        name: name in the config.
        origin: file or package that it came from.
        sites: names of the sites that it is asked about; None: all.
        rules: text that changes when the plug-in or its options do.
        max_s: longest time of a call off the event loop.
        disabled: why it is not called any more; empty: it is.
        failures: failures that count; `failures_in_all` since the start.
        last_failure: what went wrong last.
        overruled: decisions that another plug-in made differently.
        grown_bytes: about how much its calls made the process grow.
    """

    def __init__(
        self,
        name: str,
        origin: str,
        *,
        sites: frozenset[str] | None = None,
        rules: str = "",
        max_failures: int = 10,
        max_s: float = 10.0,
        max_memory_bytes: int = 256 << 20,
    ) -> None:
        self.name = name
        self.origin = origin
        self.sites = sites
        self.rules = rules
        self.max_s = max_s
        self.disabled = ""
        self.failures = self.failures_in_all = 0
        self.last_failure = ""
        self.overruled = 0
        self.grown_bytes = 0
        self.hooks: dict[str, Hook] = {}
        self.guard: LoopGuard | None = None
        self.memory: ResidentMemory | None = None
        self.on_failure: OnFailure = _ignore
        self._max_failures = max_failures
        self._max_memory_bytes = max_memory_bytes
        self._growths = 0
        self._good_calls = 0

    def serves(self, site: str) -> bool:
        """Whether it is asked about a site now."""
        return not self.disabled and (self.sites is None or site in self.sites)

    def hook(self, name: str) -> Hook:
        """Return the figures of a hook; of a part that it supplies, too."""
        found = self.hooks.get(name)
        if found is None:
            found = self.hooks[name] = Hook(self, name)
        return found

    def disable(self, why: str) -> None:
        """Call it no more until the next start."""
        if not self.disabled:
            self.disabled = why

    def fail(self, hook: Hook, where: str, why: str, *, for_good: bool = False) -> None:
        """Count a failure; the last that is allowed disables the plug-in.

        Args:
            where: the page or site it was called for.
            for_good: whether this failure alone is enough.
        """
        hook.failures += 1
        self.failures += 1
        self.failures_in_all += 1
        self._good_calls = 0
        self.last_failure = f"{hook.name}: {why}"[:MAX_WHY]
        if for_good:
            self.disable(self.last_failure)
        elif self.failures >= self._max_failures:
            self.disable(f"{self.failures} failures, the last: {self.last_failure}"[:MAX_WHY])
        self.on_failure(self, hook.name, where, why[:MAX_WHY])

    def succeeded(self) -> None:
        """Count a call without a failure, while failures count."""
        self._good_calls += 1
        if self._good_calls >= FORGIVEN_CALLS:
            self._good_calls = 0
            self.failures -= 1

    def grew(self, hook: Hook, by_bytes: int, calls: int) -> None:
        """Count how much a measured call made the process grow, for so many calls."""
        self.grown_bytes += by_bytes * calls
        self._growths += by_bytes >= GROWTH_BYTES
        if self._growths >= MIN_GROWTHS and self.grown_bytes > self._max_memory_bytes:
            grown = self.grown_bytes >> 20
            limit = self._max_memory_bytes >> 20
            why = f"its calls made the process grow by about {grown} MiB, more than {limit} MiB"
            self.fail(hook, "", why, for_good=True)


class Hook:
    """One hook of one plug-in: its function, and what its calls cost.

    Attributes:
        plugin: whose it is.
        name: name of the hook.
        level_s: a high estimate of the time of the next call, seconds.
    """

    __slots__ = (
        "_function",
        "_label",
        "_long_at",
        "_places",
        "calls",
        "failures",
        "level_s",
        "longest_s",
        "name",
        "plugin",
        "total_s",
    )

    def __init__(
        self,
        plugin: Plugin,
        name: str,
        function: Callable[..., object] | None = None,
        places: Sequence[int] = (),
    ) -> None:
        """Make a hook.

        Args:
            function: the implementation; None: a part with methods of its own.
            places: which of the arguments of the specification it takes, in its order.
        """
        self.plugin = plugin
        self.name = name
        self._function = function
        self._places = tuple(places)
        self._label = f"plug-in {plugin.name} ({name})"
        self.calls = self.failures = 0
        self._long_at = -LONG_WITHIN
        self.total_s = self.longest_s = self.level_s = 0.0

    @property
    def figures(self) -> HookFigures:
        """What it did since the start."""
        return HookFigures(self.name, self.calls, self.failures, self.total_s, self.longest_s)

    def call(self, where: str, *arguments: object) -> Any:  # noqa: ANN401 (anything)
        """Return what the implementation returns, or `FAILED`.

        Args:
            where: the page or site that it is called for.
            arguments: those of the specification, in its order.
        """
        return self.run(where, self.implementation, *arguments)

    def implementation(self, *arguments: object) -> object:
        """Call the implementation itself, within `run`."""
        assert self._function is not None
        return self._function(*[arguments[place] for place in self._places])

    def run(self, where: str, function: Callable[..., object], *arguments: object) -> Any:  # noqa: ANN401
        """Return what a function of the plug-in returns, or `FAILED`."""
        plugin, guard = self.plugin, self.plugin.guard
        on_loop = guard is not None and guard.is_here()
        calls = self._measured_calls(on_loop=on_loop)
        memory = plugin.memory
        before_bytes = memory.bytes() if memory is not None and calls else 0
        self.calls += 1
        began_at = perf_counter()
        named = guard.begin(self._label, began_at) if guard is not None and on_loop else None
        try:
            try:
                answer = function(*arguments)
            finally:
                if guard is not None and on_loop:
                    guard.running = None
        except HookTimeoutError:
            answer = FAILED
        except (Exception, SystemExit) as error:
            plugin.fail(self, where, f"{type(error).__name__}: {error}")
            answer = FAILED
        took_s = perf_counter() - began_at
        if guard is not None and on_loop and guard.overran:
            plugin.fail(self, where, self._too_long(took_s), for_good=True)
            answer = FAILED
        if guard is not None and on_loop:
            guard.name_again(named, is_long=took_s >= LONG_S)
        self._count(took_s)
        if plugin.failures:
            plugin.succeeded()
        if memory is not None and calls:
            plugin.grew(self, memory.bytes() - before_bytes, calls)
        return answer

    def abandoned(self, where: str, took_s: float) -> None:
        """Note that a call on a thread did not end in time; the plug-in is disabled."""
        self._count(took_s)
        self.plugin.fail(self, where, self._too_long(took_s), for_good=True)

    def reject(self, where: str, why: str) -> None:
        """Note that an answer is not as described."""
        self.plugin.fail(self, where, why)

    def _too_long(self, took_s: float) -> str:
        return f"did not end within {took_s:.1f} s"

    def _count(self, took_s: float) -> None:
        self.total_s += took_s
        self.longest_s = max(self.longest_s, took_s)
        self.level_s *= LEVEL_KEPT
        if took_s > QUICK_S:
            if self.calls - self._long_at < LONG_WITHIN:
                self.level_s = max(took_s, self.level_s)
            self._long_at = self.calls

    def _measured_calls(self, *, on_loop: bool) -> int:
        """Return for how many calls this one is measured for memory; 0: it is not."""
        if not on_loop or self.calls < SAMPLE_ONE_IN:
            return 1
        return SAMPLE_ONE_IN if self.calls % SAMPLE_ONE_IN == 0 else 0
