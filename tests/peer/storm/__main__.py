"""Run a storm and print its figures; exit status 1 if one misses what is asked."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.peer.process import ProcessError
from tests.peer.storm.corpus import make_corpus
from tests.peer.storm.final import Differences, compare
from tests.peer.storm.model import PARTS, WikiModel
from tests.peer.storm.report import Line, make_report
from tests.peer.storm.storm import Storm, StormOptions
from tests.peer.storm.world import World, with_world, write_config

WARM_UP_DELAY_S = 0.02
STALLED_S = 30.0
"""Time without another right page after which the warm-up is over."""

HISTORIES_S = 60.0
SHOWN = 5


def run_storm(
    folder: Path,
    *,
    pages: int,
    parts: tuple[str, ...],
    delay_s: float,
    options: StormOptions,
    say: Any = print,
) -> tuple[list[Line], dict[str, Any]]:
    """Run a storm in a folder; return the report, and everything that was measured."""
    corpus = make_corpus(pages, options.seed, parts)
    model = WikiModel(corpus, parts)
    with with_world(folder, corpus, parts, options.seed, WARM_UP_DELAY_S) as world:
        storm = Storm(world, model, options)
        say(f"{len(model.pages)} pages, {len(model.members())} of them mirrored; warming up")
        storm.expect_everything()
        _warm_up(storm, say)
        _slow_down(world, delay_s, say)
        say("storm")
        storm.run()
        say("comparing")
        differences = compare(world, model, storm.watch, storm.editor.touched)
        requests = list(world.wiki.nginx.ledger().rows())
        lines = make_report(
            storm.watch, storm.log, differences, requests, delay_s, world.unexpected_ends
        )
        return lines, _details(storm, differences, world)


def _warm_up(storm: Storm, say: Any) -> None:
    """Read until the mirror shows everything, or nothing more for a while."""
    wrong, before = storm.count_wrong(), sys.maxsize
    while wrong < before:
        if storm.read_until(lambda: storm.count_wrong() == 0, time.time() + STALLED_S):
            return
        wrong, before = storm.count_wrong(), wrong
    found = [each for each in storm.watch.all() if not each.is_right]
    say(f"wrong before the storm: {len(found)}")
    for each in found[:SHOWN]:
        say(storm.explain(each))


def _slow_down(world: World, delay_s: float, say: Any) -> None:
    """Wait until the histories are read, then reload with the delay of the storm."""
    known = len(world.ask("/pages?state=visited&limit=10000") or [])

    def has_read_histories(jobs: Any) -> bool:
        [progress] = [each["progress"] for each in jobs if each["name"] == "backfill"]
        complete = int(progress.get("complete", 0))
        return complete == progress.get("pages") and complete >= 0.8 * known

    try:
        world.crawld.post("/jobs/backfill/run")
        world.crawld.wait_until(has_read_histories, "/jobs", timeout_s=HISTORIES_S)
    except ProcessError:
        say("not all histories are read before the storm")
    write_config(world.config, world.wiki, world.corpus, world.parts, delay_s)
    world.crawld.post("/reload")
    # A request of the old delay may be under way.
    world.crawld.wait_until(lambda hosts: all(h["delay_s"] == delay_s for h in hosts), "/hosts")


def _details(storm: Storm, differences: Differences, world: World) -> dict[str, Any]:
    log = storm.log
    return {
        "changes": storm.watch.changes,
        "outage": log.outage,
        "kills": log.kills,
        "late_s": log.late_s,
        "storm": (log.started_at, log.ended_at),
        "status": [asdict(probe) for probe in log.status],
        "differences": differences.found,
        "waits": [
            {
                "title": watched.title,
                "row": each.row,
                "change": each.change,
                "at": each.at,
                "seen_at": each.seen_at,
            }
            for watched in storm.watch.all()
            for each in watched.expectations
            if each.row != "start"
        ],
        "relapses": {each.url: each.relapses for each in storm.watch.all() if each.relapses},
        "sources": world.ask("/hints"),
    }


def print_report(lines: list[Line]) -> None:
    """Print the lines as a table."""
    signs = {True: "yes", False: "NO", None: ""}
    for line in (Line("line", "asked", "seen", None), *lines):
        ok = "ok" if line.name == "line" else signs[line.ok]
        print(f"{line.name:36} {line.asked:28} {line.seen:72} {ok}")


def main() -> None:
    """Run a storm with the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=15.0, help="length of the storm")
    parser.add_argument("--settle", type=float, default=120.0, help="seconds after the storm")
    parser.add_argument("--delay", type=float, default=1.0, help="seconds between requests")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument(
        "--part", choices=(*PARTS, "all", "whole"), default="all", help="what is mirrored"
    )
    parser.add_argument("--kills", action="store_true", help="kill the daemon every two minutes")
    parser.add_argument("--outage", action="store_true", help="answer 503 for a minute")
    parser.add_argument(
        "--once", action="store_true", help="edit the templates of 50 and 200 pages once each"
    )
    parser.add_argument("--json", type=Path, help="file for the figures and all events")
    parser.add_argument("--folder", type=Path, help="empty folder that is kept afterwards")
    arguments = parser.parse_args()
    parts = {"all": PARTS, "whole": ()}.get(arguments.part, (arguments.part,))
    storm_s = 60.0 * arguments.minutes
    options = StormOptions(
        storm_s=storm_s,
        settle_s=arguments.settle,
        seed=arguments.seed,
        kills=arguments.kills,
        outage_s=min(60.0, storm_s / 5) if arguments.outage else 0.0,
        once=arguments.once,
    )
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        lines, details = run_storm(
            arguments.folder or Path(temporary),
            pages=arguments.pages,
            parts=parts,
            delay_s=arguments.delay,
            options=options,
            say=lambda text: print(f"{time.strftime('%H:%M:%S')} {text}", flush=True),
        )
    print_report(lines)
    if arguments.json:
        report = {
            "arguments": vars(arguments),
            "lines": [asdict(line) for line in lines],
            **details,
        }
        arguments.json.write_text(json.dumps(report, indent=1, default=str, ensure_ascii=False))
    sys.exit(any(line.ok is False for line in lines))


if __name__ == "__main__":
    main()
