"""What plug-ins cost: a crawl with a plug-in that has a hook in each stage and does nothing.

A daemon mirrors the same site again and again, without a plug-in and with it, in turn; each run
begins with an empty file. The CPU time counts from the first answer of the daemon until the last
page is stored, so that the start does not matter. Nothing else is measured: what a real plug-in
does in its hooks is its own.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from crawld.bench import crawld_process, nginx
from crawld.bench.crawld_process import visits_made
from crawld.bench.process import program_error
from crawld.bench.result import Metrics, build_result, figures
from crawld.bench.run import Progress
from crawld.bench.served_site import ServedSite
from crawld.bench.site_tree import write_site

PLUGIN: Final = '''"""Has a hook in each stage, and no opinion."""

from crawld.plugins import hookimpl

CRAWLD_API = 1


@hookimpl
def prepare_request(page, request):
    return None


@hookimpl
def read_response(reading):
    return None


@hookimpl
def weigh_page(url, site):
    return None
'''

_NAME: Final = "nothing"
_LIMIT_S: Final = 1_800.0
_LEAST_ASKED: Final = 0.9
"""Share of the pages that each hook is called for at least: the last visits are under way."""


@dataclass(frozen=True, slots=True)
class PluginLoad:
    """How much is measured.

    Attributes:
        hosts: hosts of the site, of a hundred pages each.
        runs: crawls with the plug-in, and as many without.
    """

    hosts: int
    runs: int


FULL: Final = PluginLoad(hosts=20, runs=7)
QUICK: Final = PluginLoad(hosts=1, runs=1)


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Measure crawls with and without the plug-in.

    Raises:
        OperatorError: nginx is missing, or the daemon ended.
    """
    load = QUICK if quick else FULL
    runs: dict[bool, list[Metrics]] = {True: [], False: []}
    with tempfile.TemporaryDirectory(prefix="crawld-bench-") as folder:
        directory = Path(folder)
        directory.chmod(0o711)  # nginx workers run as another user
        tree = write_site(directory / "site", load.hosts)
        with nginx.serve(tree, directory / "nginx") as port:
            web = ServedSite(tree, port, directory)
            for number in range(load.runs):
                # The second of two crawls has warmer caches: each kind is the second as often.
                for plugged in (True, False) if number % 2 else (False, True):
                    found = _crawl(web, plugged=plugged)
                    runs[plugged].append(found)
                    kind = "with the plug-in" if plugged else "without"
                    progress(f"run {number + 1} of {load.runs}, {kind}: {figures(found)}")
    return build_result("plugins", runs[True], {"none": runs[False]})


def _crawl(web: ServedSite, *, plugged: bool) -> Metrics:
    directory = web.new_directory("crawl")
    (directory / "plugins").mkdir()
    (directory / "plugins" / f"{_NAME}.py").write_text(PLUGIN, encoding="utf-8")
    config = crawld_process.write_config(
        directory,
        "site",
        web.tree.seeds(web.port),
        {
            "politeness": "host_delay_s = 0.0\naddress_delay_s = 0.0",
            "schedule": "min_revisit_s = 86400.0",  # first visits only
        },
    )
    if plugged:
        text = config.read_text(encoding="utf-8")
        text = text.replace("[daemon]\n", f'[daemon]\nplugins_dir = "{directory}/plugins"\n', 1)
        config.write_text(f'{text}\n[[plugin]]\nname = "{_NAME}"\n', encoding="utf-8")
    with crawld_process.run_daemon_process(config) as daemon:
        before = visits_made(daemon.wait_answering())
        began_s, done, calls = daemon.child.cpu_s(), before, dict[str, int]()
        until_s = time.monotonic() + _LIMIT_S
        while done < web.tree.page_count:
            if time.monotonic() > until_s or not daemon.child.running(for_ms=100):
                raise program_error("crawld", "did not visit every page", daemon.child)
            if (status := daemon.status()) is not None:
                done = visits_made(status)
                calls = _calls(status)
        if plugged and min(calls.values(), default=0) < _LEAST_ASKED * web.tree.page_count:
            raise program_error("crawld", f"asked the plug-in only {calls}", daemon.child)
        return {"page_cpu_ms": 1_000 * (daemon.child.cpu_s() - began_s) / (done - before)}


def _calls(status: Mapping[str, object]) -> dict[str, int]:
    """Return how often each hook was called."""
    plugins = cast("list[Mapping[str, list[Mapping[str, int]]]]", status.get("plugins", []))
    return {str(hook["hook"]): hook["calls"] for plugin in plugins for hook in plugin["hooks"]}
