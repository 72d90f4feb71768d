"""Runs a storm: changes, kills and an outage on time, and between them reads of the mirror.

One thread does it all, so the order of changes and reads is certain: a read that begins after a
change was saved is judged by it.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tests.peer.storm.corpus import Article
from tests.peer.storm.editor import StormEditor
from tests.peer.storm.model import WikiModel
from tests.peer.storm.schedule import make_schedule
from tests.peer.storm.status_probe import StatusProbe, probe_status
from tests.peer.storm.watch import Shown, Watch, Watched
from tests.peer.storm.world import World

READS_PER_S = 25.0
SWEEPS_PER_S = 2.0
STATUS_EVERY_S = 20.0
KILL_EVERY_S = 120.0
OUTAGE_AT = 0.55
"""Start of the outage, as a share of the storm."""

SECOND_S = 1.05
"""Least time between two changes: more than the resolution of MediaWiki's times."""

_PAUSE_S = 0.02

_READ_EVERY_S = ((20.0, 0.5), (60.0, 1.0), (180.0, 3.0), (float("inf"), 10.0))
"""How old a change is at most, and how often its page is read until the change is visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StormOptions:
    """What happens in a storm; times in seconds, `outage_s` 0: none.

    `once`: each of the templates of 50 and 200 pages is edited once.
    """

    storm_s: float
    settle_s: float
    seed: int
    kills: bool
    outage_s: float
    once: bool = False


@dataclass
class StormLog:
    """What happened; times in Unix seconds.

    Attributes:
        outage: start and end of the outage, if there was one.
        read_until_at: until when the mirror was read.
        late_s: the most that a change was made after its time.
    """

    started_at: float = 0.0
    ended_at: float = 0.0
    read_until_at: float = 0.0
    outage: tuple[float, float] | None = None
    kills: list[float] = field(default_factory=list)
    status: list[StatusProbe] = field(default_factory=list)
    late_s: float = 0.0


class Storm:
    """A storm over a world.

    Attributes:
        log: what happened.
        watch: what became visible when.
        editor: who changed the wiki.
    """

    def __init__(self, world: World, model: WikiModel, options: StormOptions) -> None:
        self.log = StormLog()
        self.watch = Watch(model, world.wiki.url)
        self.editor = StormEditor(world.wiki, model, options.seed)
        self._world = world
        self._model = model
        self._options = options
        self._rng = random.Random(options.seed)
        self._reads = 0.0
        self._sweeps = 0.0
        self._status_at = 0.0
        self._changed_at = 0.0

    def expect_everything(self) -> None:
        """Expect the wiki as it is before the storm."""
        now = time.time()
        self.watch.note("start", now)
        for name in self._model.images:
            self._expect_image(name, now)

    def count_wrong(self) -> int:
        """Return at how many URLs the mirror was wrong when it was last read."""
        return sum(not each.is_right for each in self.watch.all())

    def read_until(self, condition: Callable[[], bool], until: float) -> bool:
        """Read the mirror until a condition holds or a time has come; return whether it holds."""
        while not (held := condition()) and time.time() < until:
            self._world.ensure_running()
            self._read_some(time.time())
        return held

    def explain(self, watched: Watched) -> str:
        """Return what the mirror shows at a URL, and what it should show."""
        seen = self._world.reader.read(watched.url)
        marked = ", marked as gone" if seen.is_marked else ""
        shown = watched.expectations[-1].shown
        wanted = shown.page if shown.page is not None else f"file, style {shown.style}"
        needed = "required" if shown.required else "or nothing"
        return f"{watched.url}: {seen.status}{marked}, shows {seen.marks}; {wanted}, {needed}"

    def run(self) -> None:
        """Make the changes, then let the mirror settle."""
        kinds = self.editor.kinds()
        options, log = self._options, self.log
        log.started_at = time.time()
        steps: list[tuple[float, Callable[[], None]]] = [
            (change.at, partial(self._change, change.kind, kinds[change.kind]))
            for change in make_schedule(options.storm_s, options.seed, once=options.once)
        ]
        with contextlib.ExitStack() as outage:
            steps += self._disturbances(outage)
            for at, step in sorted(steps, key=lambda each: each[0]):
                self._read_for(log.started_at + at - time.time())
                log.late_s = max(log.late_s, time.time() - log.started_at - at)
                step()
        log.ended_at = time.time()
        self._read_for(options.settle_s)
        log.read_until_at = time.time()

    def _disturbances(
        self, outage: contextlib.ExitStack
    ) -> Iterator[tuple[float, Callable[[], None]]]:
        options = self._options
        if options.kills:
            every_s = min(KILL_EVERY_S, options.storm_s / 2)
            for number in range(1, int((options.storm_s - 1) / every_s) + 1):
                yield number * every_s, self._kill
        if options.outage_s:
            start = OUTAGE_AT * options.storm_s

            def begin() -> None:
                outage.enter_context(self._world.wiki.nginx.down())
                self.log.outage = (time.time(), float("inf"))

            def end() -> None:
                outage.close()
                assert self.log.outage is not None
                self.log.outage = (self.log.outage[0], time.time())

            yield start, begin
            yield start + options.outage_s, end

    def _kill(self) -> None:
        self.log.kills.append(time.time())
        self._world.crawld.kill()
        self._world.start_daemon(ready=False)

    def _change(self, kind: str, make: Callable[[], bool]) -> None:
        # Of a page and its template that are saved in one second, the wiki itself may show the old.
        self._read_for(self._changed_at + SECOND_S - time.time())
        images = dict(self._model.images)
        if not make():
            return
        self._changed_at = now = time.time()
        self.watch.note(kind, now)
        for name, content in self._model.images.items():
            if images.get(name) is not content:
                self._expect_image(name, now)
        if kind == "style":
            self._expect_style(now)

    def _expect_image(self, name: str, now: float) -> None:
        """Expect a file at the URLs at which pages of the part show it, or did."""
        content = self._model.images[name]
        shown = Shown(digest=hashlib.blake2b(content, digest_size=16).digest())
        members = self._model.members()
        widths = {
            width
            for title in members
            if isinstance(page := self._model.pages[title], Article)
            for file, width in page.files
            if file == name
        }
        urls = {image_url(self._world.wiki.origin, name, width) for width in widths}
        self.watch.expect_image(name, urls, now, shown)

    def _expect_style(self, now: float) -> None:
        url = self._world.style_url()
        if url is not None:
            self.watch.expect_file(url, now, Shown(style=self.editor.style_number))

    def _read_for(self, duration_s: float) -> None:
        until = time.time() + duration_s
        while (now := time.time()) < until:
            self._world.ensure_running()
            if now >= self._status_at:
                self._status_at = now + STATUS_EVERY_S
                self._probe_status()
            else:
                self._read_some(now)

    def _probe_status(self) -> None:
        for watched in self.watch.by_title.values():
            if not watched.is_right and time.time() - watched.probed_at > 1.0:
                self._read(watched)
        self.log.status += probe_status(self._world, self.watch, time.time())

    def _read_some(self, now: float) -> None:
        """Read what is due, within the limits; pause if nothing is."""
        due = [each for each in self.watch.all() if not each.is_right and each.probe_at <= now]
        if due and now >= self._reads:
            self._reads = max(self._reads, now - 1.0) + 1.0 / READS_PER_S
            # An edit of a template makes hundreds of pages due, more than are read in time.
            self._read(min(due, key=lambda each: (each.waits_for_template, each.probe_at)))
        elif now >= self._sweeps:
            self._sweeps = now + 1.0 / SWEEPS_PER_S
            right = [each for each in self.watch.all() if each.is_right]
            if right:
                self._read(self._rng.choice(right))
        else:
            time.sleep(_PAUSE_S)

    def _read(self, watched: Watched) -> None:
        seen = self._world.reader.read(watched.url)
        now = time.time()
        watched.judge(seen, now)
        if not watched.is_right:
            # A read must not miss an edit for long because a template was edited long before it.
            pending = watched.pending or [watched.oldest]
            edits = [each for each in pending if not each.row.startswith("fan_out")]
            waits_s = now - max(each.at for each in edits or pending)
            pause_s = next(every_s for oldest_s, every_s in _READ_EVERY_S if waits_s < oldest_s)
            watched.probe_at = now + pause_s * (1.0 if edits else 3.0)


def image_url(origin: str, name: str, width: int) -> str:
    """Return the URL of a file, or of its thumbnail of a width."""
    name = name.removeprefix("File:").replace(" ", "_")
    digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    quoted = urllib.parse.quote(name)
    path = f"{digest[0]}/{digest[:2]}/{quoted}"
    if width:
        return f"{origin}/w/images/thumb/{path}/{width}px-{quoted}"
    return f"{origin}/w/images/{path}"
