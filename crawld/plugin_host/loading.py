"""Find, load and check plug-ins.

A plug-in is found by the name of its `[[plugin]]` block: a file `NAME.py` or a package `NAME` in
`[daemon] plugins_dir`, else an entry point of the group `crawld.plugins`. Nothing else is imported.
One that cannot be used is refused with the reason and the fix; the caller decides what then.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pluggy

from crawld import plugins as interface
from crawld.config.plugin import PluginConfig, is_plugin_name
from crawld.errors import ConfigError
from crawld.plugin_host.plugin import Hook, Plugin
from crawld.plugins import API, NAME

GROUP: Final = "crawld.plugins"

MODULE_PREFIX: Final = "crawld_plugin_"
"""Modules of the directory are imported under a name of their own."""

ANY_API: Final = "CRAWLD_API"


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plug-in that could be loaded.

    Attributes:
        origin: its file, or its package and version.
        load: imports it.
    """

    name: str
    origin: str
    load: Callable[[], object]


def find_plugins(directory: Path | None) -> dict[str, FoundPlugin]:
    """Return the plug-ins that a `[[plugin]]` block may name; the directory comes first.

    Raises:
        ConfigError: the directory cannot be read.
    """
    found = {each.name: each for each in map(_of_package, entry_points(group=GROUP))}
    if directory is not None:
        found |= {each.name: each for each in _in_directory(directory)}
    return dict(sorted(found.items()))


def _of_package(entry: EntryPoint) -> FoundPlugin:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    return FoundPlugin(entry.name, package, entry.load)


def _in_directory(directory: Path) -> Iterator[FoundPlugin]:
    try:
        paths = sorted(directory.iterdir())
    except OSError as error:
        raise ConfigError(
            f"[daemon] plugins_dir {directory} cannot be read: {error.strerror}",
            hint="create it, or unset plugins_dir",
        ) from None
    for path in paths:
        file = path / "__init__.py" if path.is_dir() else path
        is_test = path.stem.startswith("test_")
        if file.suffix == ".py" and is_plugin_name(path.stem) and not is_test and file.is_file():
            yield of_file(path.stem, file)


class _Source(SourceFileLoader):
    """Compiles a file whenever it is loaded, and leaves no bytecode in the operator's directory.

    Bytecode counts as current if the file was changed within the second and has the same size.
    """

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Refuse the facts by which bytecode is compared."""
        raise OSError


def of_file(name: str, file: Path) -> FoundPlugin:
    """Return the plug-in of a file."""

    def load() -> ModuleType:
        module_name = MODULE_PREFIX + name
        inside = [str(file.parent)] if file.name == "__init__.py" else None
        spec = importlib.util.spec_from_file_location(
            module_name,
            file,
            loader=_Source(module_name, str(file)),
            submodule_search_locations=inside,
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module  # dataclasses and pickle look it up
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[module_name]
            raise
        return module

    return FoundPlugin(name, str(file), load)


class PluginHost:
    """The plug-ins in use.

    Attributes:
        plugins: those that the config names, in its order.
    """

    def __init__(self) -> None:
        self.plugins: list[Plugin] = []
        self._manager = pluggy.PluginManager(NAME)
        self._manager.add_hookspecs(interface)
        self._specified = {
            name: tuple(inspect.signature(spec).parameters)
            for name, spec in vars(interface).items()
            if hasattr(spec, f"{NAME}_spec")
        }
        self._hooks: dict[str, list[Hook]] = {name: [] for name in self._specified}
        self.built_in = Plugin("crawld", "built in")

    def hooks(self, name: str) -> list[Hook]:
        """Return the implementations of a hook by the plug-ins of the config, first one first."""
        return self._hooks[name]

    def implementations(self, name: str) -> list[tuple[str, Callable[..., object]]]:
        """Return (plug-in, function) of every implementation of a hook, built-in ones included."""
        caller = getattr(self._manager.hook, name)
        return [(each.plugin_name, each.function) for each in caller.get_hookimpls()]

    def add_built_in(self, name: str, part: object) -> None:
        """Register a part of crawld itself; it is trusted, and called without limits."""
        self._manager.register(part, f"{_BUILT_IN_MARK}{name}")

    def add(self, found: FoundPlugin, config: PluginConfig) -> Plugin:
        """Import a plug-in, check it, give it its options, and put it behind the others.

        Raises:
            ConfigError: it cannot be used; the hint says what to do.
        """
        part = _imported(found)
        _check_version(found, getattr(part, ANY_API, None))
        self._check_signatures(found, part)
        self._register(found, part)
        plugin = Plugin(
            found.name,
            found.origin,
            sites=frozenset(config.sites) or None,
            rules=f"{found.name} {found.origin} {_written_at(found)} {config.options!r}",
            max_failures=config.max_failures,
            max_s=config.max_s,
            max_memory_bytes=config.max_memory_bytes,
        )
        implemented = self._implemented(found)
        configure = implemented.pop("configure", None)
        if configure is None and config.options:
            raise _refusal(found, "takes no options", "remove options from its [[plugin]] block")
        if not implemented:
            raise _refusal(found, "implements no hook", "mark its functions with @hookimpl")
        if configure is not None:
            try:
                configure(*[dict(config.options)] * _taken(configure))
            except (Exception, SystemExit) as error:
                why = f"refuses its options: {error}"
                raise _refusal(found, why, "correct options in its [[plugin]] block") from error
        for name, function in implemented.items():
            parameters = tuple(inspect.signature(function).parameters)
            places = [self._specified[name].index(each) for each in parameters]
            hook = plugin.hooks[name] = Hook(plugin, name, function, places)
            self._hooks[name].append(hook)
        self.plugins.append(plugin)
        return plugin

    def _check_signatures(self, found: FoundPlugin, part: object) -> None:
        """Check that each marked function has the name and the arguments of a hook."""
        for name in dir(part):
            function = getattr(part, name, None)
            marked = getattr(function, f"{NAME}_impl", None)
            if marked is None or not callable(function):
                continue
            hook = marked.get("specname") or name
            if hook not in self._specified:
                why = f"has a function {name} marked with @hookimpl, and there is no hook {hook}"
                raise _refusal(
                    found, why, _known_hint(hook, tuple(self._specified), "possible names")
                )
            known = self._specified[hook]
            for parameter in inspect.signature(function).parameters.values():
                if parameter.name not in known:
                    why = f"has {hook}(…) with the argument {parameter.name}, which it never gets"
                    raise _refusal(found, why, _known_hint(parameter.name, known, "arguments"))

    def _register(self, found: FoundPlugin, part: object) -> None:
        try:
            self._manager.register(part, found.name)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            hint = "compare it with crawld/plugins.py"
            raise _refusal(found, str(error), hint) from None

    def _implemented(self, found: FoundPlugin) -> dict[str, Callable[..., object]]:
        implemented = {}
        for name in self._specified:
            for each in getattr(self._manager.hook, name).get_hookimpls():
                if each.plugin_name != found.name:
                    continue
                if each.hookwrapper or each.wrapper:
                    raise _refusal(found, f"{name} is a wrapper", "return a value instead")
                if inspect.iscoroutinefunction(each.function):
                    raise _refusal(
                        found, f"{name} is async", "make it a plain function: async def -> def"
                    )
                implemented[name] = each.function
        return implemented


_BUILT_IN_MARK: Final = "crawld."


def is_built_in(plugin_name: str) -> bool:
    """Whether a registered name is that of a part of crawld itself."""
    return plugin_name.startswith(_BUILT_IN_MARK)


def load_plugins(
    configs: tuple[PluginConfig, ...], directory: Path | None, built_in: Mapping[str, object]
) -> PluginHost:
    """Return a host with the plug-ins of a config.

    Raises:
        ConfigError: one of them cannot be used.
    """
    host = PluginHost()
    for name, part in built_in.items():
        host.add_built_in(name, part)
    available = find_plugins(directory) if configs else {}
    for config in configs:
        found = available.get(config.name)
        if found is None:
            raise _missing(config.name, directory, list(available))
        host.add(found, config)
    return host


def _missing(name: str, directory: Path | None, available: list[str]) -> ConfigError:
    known = f"known are: {', '.join(available)}" if available else "none is installed"
    where = f"write {directory / f'{name}.py'}" if directory else "set [daemon] plugins_dir"
    return ConfigError(f'there is no plug-in "{name}"', hint=f"{where}, or install it; {known}")


def _imported(found: FoundPlugin) -> object:
    try:
        return found.load()
    except (Exception, SystemExit) as error:
        hint = "try it: crawld plugins check " + found.origin
        if isinstance(error, ModuleNotFoundError):
            hint = f"install it: pip install {error.name}"
        why = f"cannot be imported: {type(error).__name__}: {error}"
        raise _refusal(found, why, hint) from error


def _check_version(found: FoundPlugin, stated: object) -> None:
    if stated == API:
        return
    if stated is None:
        hint = f"add the line: {ANY_API} = {API}"
        raise _refusal(found, f"states no {ANY_API}", hint)
    why = f"is written for version {stated!r} of the plug-in interface, this crawld has {API}"
    newer = isinstance(stated, int) and stated > API
    hint = "update crawld" if newer else "update the plug-in; the CHANGELOG lists what changed"
    raise _refusal(found, why, f"{hint}, or remove its [[plugin]] block")


def _refusal(found: FoundPlugin, why: str, hint: str) -> ConfigError:
    return ConfigError(f'plug-in "{found.name}" ({found.origin}) {why}', hint=hint)


def _known_hint(word: str, known: Sequence[str], what: str) -> str:
    """Return which names there are, and the one that was probably meant."""
    near = difflib.get_close_matches(word, known, n=1)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"{guess}its {what} are: {', '.join(known)}" if known else f"it has no {what}"


def _taken(function: Callable[..., object]) -> int:
    return len(inspect.signature(function).parameters)


def _written_at(found: FoundPlugin) -> str:
    """Return text that changes when the file of a plug-in changes; a package has its version."""
    path = Path(found.origin)
    return str(path.stat().st_mtime_ns) if path.is_file() else ""
