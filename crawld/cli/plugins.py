"""`crawld plugins`: list, check and make plug-ins."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from crawld.cli.output import printable
from crawld.config.load import load
from crawld.config.model import Config
from crawld.core.display import plural
from crawld.errors import EXIT_OK, EXIT_OPERATOR, OperatorError
from crawld.plugin_host.builtin import BUILT_IN
from crawld.plugin_host.in_use import use_plugins
from crawld.plugin_host.loading import find_plugins
from crawld.plugin_host.skeleton import write_skeleton
from crawld.plugin_host.trial import PluginTrial, try_file, try_named


def list_all(path: Path | None, *, as_json: bool) -> int:
    """Print what could be used, what is used, and the names of all parts."""
    from crawld.daemon.daemon_parts import DAEMON_PARTS

    config = Config() if path is None else load(path).config
    used = [each.name for each in config.plugins]
    found = find_plugins(config.daemon.plugins_dir)
    parts = use_plugins(config, {**BUILT_IN, **DAEMON_PARTS}).supplied
    tables = {
        "policies": sorted(parts.policies),
        "estimators": sorted(parts.estimators),
        "differences": sorted(parts.differences),
        "exporters": sorted(parts.exporters),
        "notifiers": sorted(parts.notifiers),
    }
    built_in = [*BUILT_IN, *DAEMON_PARTS]
    if as_json:
        rows = [{"name": n, "origin": f.origin, "used": n in used} for n, f in found.items()]
        print(json.dumps({"plugins": rows, "built_in": built_in, "parts": tables}, indent=2))
        return EXIT_OK
    for name, each in found.items():
        state = f"used, number {used.index(name) + 1}" if name in used else "not used"
        print(printable(f"{name:<20} {state:<16} {each.origin}"))
    if not found:
        print("no plug-in is installed or in plugins_dir; make one: crawld plugins new NAME")
    if path is None:
        print("-c FILE lists the plug-ins in plugins_dir of a config")
    print(printable(f"{'built in':<20} {', '.join(built_in)}"))
    for kind, names in tables.items():
        if names:
            print(printable(f"{kind:<20} {', '.join(names)}"))
    return EXIT_OK


def check(file: Path | None, path: Path | None, *, as_json: bool) -> int:
    """Try plug-ins; return 2 if one has a problem.

    Raises:
        OperatorError: neither a file nor a config with plug-ins is given.
    """
    config = Config() if path is None else load(path).config
    if file is not None:
        options = {each.name: dict(each.options) for each in config.plugins}
        results = [try_file(file, options.get(file.stem))]
    else:
        if not config.plugins:
            what = "names no plug-in" if path else "is not given"
            raise OperatorError(
                f"the config {what}", hint="crawld plugins check FILE.py, or -c FILE"
            )
        results = [try_named(each, config.daemon.plugins_dir) for each in config.plugins]
    if file is None and not any(each.problems for each in results):
        from crawld.daemon.daemon_parts import DAEMON_PARTS

        use_plugins(config, {**BUILT_IN, **DAEMON_PARTS})  # the config names only parts that exist
    if as_json:
        print(json.dumps([asdict(each) for each in results], indent=2))
    else:
        for each in results:
            _print_result(each)
    return EXIT_OPERATOR if any(each.problems for each in results) else EXIT_OK


def _print_result(result: PluginTrial) -> None:
    state = plural(len(result.problems), "problem") if result.problems else "ok"
    print(printable(f"{result.name}: {state}  ({result.origin})"))
    for problem in result.problems:
        print(printable(f"  wrong   {problem}"))
    for advice in result.advice:
        print(printable(f"  better  {advice}"))
    for hook in result.hooks:
        if hook.calls:
            mean_us = 1e6 * hook.total_s / hook.calls
            print(printable(f"  hook    {hook.hook}: {hook.calls} calls, {mean_us:,.0f} µs each"))
    if result.parts:
        print(printable(f"  parts   {', '.join(result.parts)}"))


def new(name: str, directory: Path) -> int:
    """Write a plug-in and its test, and print what to do next."""
    plugin, test = write_skeleton(name, directory)
    print(printable(f"wrote {plugin} and {test}"))
    print(printable(f"check it:  crawld plugins check {plugin}"))
    print(printable(f"test it:   pytest {test}"))
    print("use it:    add to the config, then restart the daemon")
    print(
        printable(f'  [daemon]\n  plugins_dir = "{directory}"\n\n  [[plugin]]\n  name = "{name}"')
    )
    return EXIT_OK
