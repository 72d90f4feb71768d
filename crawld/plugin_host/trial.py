"""Try a plug-in: load it, call each of its hooks with examples, and tell what is wrong.

What needs a network, a file or a receiver is not called: exporters, notifiers and `find_pages`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crawld.config.plugin import PluginConfig, is_plugin_name
from crawld.core.change.history import Observation
from crawld.core.change.model import PageModel
from crawld.core.units import DAY_S
from crawld.errors import ConfigError
from crawld.plugin_host import examples
from crawld.plugin_host.builtin import BUILT_IN
from crawld.plugin_host.loading import FoundPlugin, PluginHost, find_plugins, of_file
from crawld.plugin_host.loop_guard import LOOP_LIMIT_S, LoopGuard
from crawld.plugin_host.plugin import HookFigures, Plugin
from crawld.plugin_host.process_memory import ResidentMemory
from crawld.plugin_host.queue_stage import queue_stage
from crawld.plugin_host.request_stage import RequestStage
from crawld.plugin_host.response_stage import ResponseStage
from crawld.plugin_host.supplied import Supplied, supplied_by
from crawld.plugins import KnownPage, Policy, Reading, VisitObservation

SLOW_ON_LOOP_S: Final = 0.002
"""Time of a hook on the event loop that is worth a warning."""

ROUNDS: Final = 5
_ON_LOOP: Final = ("prepare_request", "weigh_page", "admit_page", "order_new_pages")


@dataclass(slots=True)
class PluginTrial:
    """What a trial of a plug-in found.

    Attributes:
        problems: each a sentence; empty: it works.
        advice: what could be better.
        parts: names that it supplies.
    """

    name: str
    origin: str
    problems: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    hooks: list[HookFigures] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)


def found_at(file: Path) -> FoundPlugin:
    """Return the plug-in of a file or package.

    Raises:
        ConfigError: it is none.
    """
    inner = file / "__init__.py" if file.is_dir() else file
    if not inner.is_file():
        raise ConfigError(f"there is no file {inner}", hint="make one: crawld plugins new NAME")
    if not is_plugin_name(file.stem):
        raise ConfigError(
            f"{file.stem!r} cannot be the name of a plug-in",
            hint="use up to 40 small letters, digits and underscores, a letter first",
        )
    return of_file(file.stem, inner)


def try_file(file: Path, options: dict[str, object] | None = None) -> PluginTrial:
    """Try the plug-in of a file, with its options.

    Raises:
        ConfigError: the file is no plug-in.
    """
    return try_plugin(found_at(file), PluginConfig(name=file.stem, options=options or {}))


def try_named(config: PluginConfig, directory: Path | None) -> PluginTrial:
    """Try a plug-in that a config names."""
    found = find_plugins(directory).get(config.name)
    if found is None:
        why = "it is neither in plugins_dir nor installed"
        return PluginTrial(config.name, "", problems=[why])
    return try_plugin(found, config)


def try_plugin(
    found: FoundPlugin, config: PluginConfig, *, loop_limit_s: float = LOOP_LIMIT_S
) -> PluginTrial:
    """Load a plug-in and call its hooks; on the main thread a hook that hangs is ended.

    Args:
        loop_limit_s: longest time of a hook on the event loop.
    """
    result = PluginTrial(found.name, found.origin)
    host = PluginHost()
    try:
        for name, part in BUILT_IN.items():
            host.add_built_in(name, part)
        plugin = host.add(found, config.model_copy(update={"sites": ()}))
        supplied = supplied_by(host)
    except ConfigError as error:
        result.problems.append(str(error).replace("\n ", ";"))
        return result
    failures: dict[str, None] = {}

    def note(plugin: Plugin, hook: str, where: str, why: str) -> None:
        failures.setdefault(f"{hook}: {why}")

    plugin.on_failure = note
    with ExitStack() as stack:
        plugin.guard = LoopGuard(limit_s=loop_limit_s)
        plugin.memory = stack.enter_context(closing(ResidentMemory()))
        stack.enter_context(plugin.guard.installed())
        for call in _calls(host, supplied):
            call()
    result.problems += failures
    result.problems += _too_slow(plugin, loop_limit_s)
    result.parts = [name for table in _tables(supplied) for name in table if ":" in name]
    result.hooks = [hook.figures for hook in plugin.hooks.values()]
    result.advice += _advice(plugin)
    return result


def _tables(supplied: Supplied) -> Sequence[Sequence[str]]:
    return [
        list(supplied.policies),
        list(supplied.estimators),
        list(supplied.differences),
        list(supplied.exporters),
        list(supplied.notifiers),
    ]


def _too_slow(plugin: Plugin, loop_limit_s: float) -> Iterator[str]:
    """Tell of hooks that ended, but took longer than the daemon lets them."""
    for hook in plugin.hooks.values():
        on_loop = hook.name in _ON_LOOP
        limit_s = loop_limit_s if on_loop else plugin.max_s
        if hook.longest_s > limit_s and not plugin.disabled:
            where = "on the event loop" if on_loop else "on a thread (max_s)"
            yield (
                f"{hook.name}: a call took {hook.longest_s:.2f} s, the limit {where} is "
                f"{limit_s:g} s; the daemon would disable it: let it do less, or cache its answers"
            )


def _advice(plugin: Plugin) -> Iterator[str]:
    for hook in plugin.hooks.values():
        if hook.name in _ON_LOOP and hook.calls and hook.total_s / hook.calls > SLOW_ON_LOOP_S:
            mean_ms = 1e3 * hook.total_s / hook.calls
            yield f"{hook.name} takes {mean_ms:.1f} ms a call and holds the event loop; aim at 0.1"


def _calls(host: PluginHost, supplied: Supplied) -> Iterator[Callable[[], object]]:
    for _ in range(ROUNDS):
        yield from _request_calls(host)
        yield from _response_calls(host)
        yield from _queue_calls(host)
    for name, factory in supplied.policies.items():
        if ":" in name:
            yield lambda make=factory: _run_policy(make())  # type: ignore[misc]
    for name, estimator in supplied.estimators.items():
        if ":" in name:
            yield lambda rate=estimator: rate(_model())  # type: ignore[misc]
    for name, difference in supplied.differences.items():
        if ":" in name:
            yield lambda measure=difference: [  # type: ignore[misc]
                measure(a, b)
                for a, b in (("", ""), ("old text", "new text"), (b"old", b""), ("same", "same"))
            ]


def _request_calls(host: PluginHost) -> Iterator[Callable[[], object]]:
    stage = RequestStage(host.hooks("prepare_request"), _may_ask)
    for visits in (0, 3):
        page = examples.page_facts(visits=visits)
        yield lambda page=page: stage.shape(page)  # type: ignore[misc]


def _may_ask(page: KnownPage, url: str) -> str | None:
    return None if url.startswith("https://www.example.org/") else "it is on another origin"


def _response_calls(host: PluginHost) -> Iterator[Callable[[], object]]:
    hooks = host.hooks("read_response")

    def ask(reading: Reading) -> None:
        answers = [(hook, ResponseStage.ask(hook, reading, {})) for hook in hooks]
        ResponseStage.joined(answers, reading, {})

    empty = "<html><head><title></title></head><body></body></html>"
    for html, previous in (
        (examples.HTML, None),
        (examples.HTML, examples.PREVIOUS_HTML),
        (empty, examples.HTML),
        ("no markup, \U0001f342 \0 & < half a tag", None),
    ):
        reading = examples.reading(html, previous)
        yield lambda reading=reading: ask(reading)  # type: ignore[misc]


def _queue_calls(host: PluginHost) -> Iterator[Callable[[], object]]:
    hooks = [host.hooks(name) for name in ("weigh_page", "admit_page", "order_new_pages")]
    stage = queue_stage("docs", *hooks)
    if stage is None:
        return
    urls = [examples.URL, "https://www.example.org/", "https://www.example.org/?q=%20&x=1"]
    yield lambda: [stage.weight(url) for url in urls]
    yield lambda: [stage.refusal(url, depth) for depth, url in enumerate(urls)]
    yield lambda: stage.ordered(urls)


def _run_policy(policy: Policy) -> None:
    """Use a policy as the daemon does: load, add, select, visit, hint, remove."""
    pages = list(range(10))
    policy.load(pages[:8], [1_000.0 + each for each in range(8)], [1.0] * 8)
    policy.add(8, None)
    policy.add(9, 1_500.0, 2.0)
    now = 2_000.0
    for number in range(30):
        page = policy.select(now)
        if page is None:
            now += DAY_S
            continue
        if number % 7 == 6:
            policy.release(page)
        else:
            policy.record_visit(page, now, VisitObservation(number % 3 == 0, (), _model()))
        now += 15.0
    policy.record_hint(3, now, trust=0.9)
    policy.set_weight(4, 5.0)
    policy.remove(5)
    policy.select(now)


def _model() -> PageModel:
    model = PageModel(first_at=0.0)
    for number in range(1, 6):
        model.update(Observation(number * DAY_S, number % 2 == 0, None, DAY_S))
    return model
