"""Which change is visible in the mirror since when.

Every watched URL has a list of expectations, one per change that altered what a reader should see
there. A read fulfils the newest expectation that it satisfies, and with it all older ones. So a
copy of a later edit counts for the earlier edit too, as does a deletion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field, replace

from tests.peer.storm.model import ABSENT, PageView, WikiModel
from tests.peer.storm.reader import Seen


@dataclass(frozen=True, slots=True)
class Shown:
    """What a reader should see at a URL.

    Attributes:
        page: at a title; None: a file.
        digest: of a file.
        style: least number of a style sheet.
        required: whether the mirror must have it; else it may be absent or marked.
    """

    page: PageView | None = None
    digest: bytes = b""
    style: int = -1
    required: bool = True

    def accepts(self, seen: Seen) -> bool:
        """Return whether a reader sees this, or something newer."""
        if not seen.is_current:
            return not self.required or self.page == ABSENT
        if self.style >= 0:
            return seen.style >= self.style
        if self.page is None:
            return seen.digest == self.digest
        if self.page.only:
            return bool(self.page.only & set(seen.marks)) or (
                "" in self.page.only and not seen.marks
            )
        if self.page.marks is None:
            # The mirror may lead to where the page is now, but may not show it here.
            return seen.is_redirected
        wanted = dict(self.page.marks)
        return wanted.keys() == seen.marks.keys() and all(
            seen.marks[key] >= number for key, number in wanted.items()
        )


@dataclass(slots=True)
class Expectation:
    """One change at one URL; times in Unix seconds.

    Attributes:
        change: number of the change in `Watch.changes`.
        row: what it is measured as: "edit", "move", "fan_out_50" …; "start" and "outside" (of the
            part) are not measured.
        seen_at: None while it is not visible.
    """

    change: int
    row: str
    at: float
    shown: Shown
    seen_at: float | None = None


@dataclass(slots=True)
class Watched:
    """One URL and its expectations, oldest first.

    Attributes:
        fulfilled: how many of them the mirror has shown.
        is_right: whether the last read satisfied the newest.
        is_shown: whether the last read showed a page of its own, as current.
        probe_at, probed_at: times of the next read and of the last.
        relapses: the reads that were wrong after one that was right: when, and what they showed.
    """

    url: str
    title: str
    expectations: list[Expectation] = field(default_factory=list)
    fulfilled: int = 0
    is_right: bool = False
    is_shown: bool = False
    probe_at: float = 0.0
    probed_at: float = 0.0
    relapses: list[tuple[float, str]] = field(default_factory=list)

    @property
    def pending(self) -> list[Expectation]:
        """The expectations that no read fulfilled."""
        return self.expectations[self.fulfilled :]

    @property
    def waits_for_template(self) -> bool:
        """Whether an older text of a template is all that is wrong, as far as was read."""
        return all(each.row.startswith("fan_out") for each in self.pending or [self.oldest])

    @property
    def was_required(self) -> bool:
        """Whether the mirror ever had to have it."""
        return any(each.shown.required for each in self.expectations)

    @property
    def oldest(self) -> Expectation:
        """The oldest expectation that was never fulfilled; after a relapse the newest."""
        return self.expectations[min(self.fulfilled, len(self.expectations) - 1)]

    def expect(self, expectation: Expectation) -> None:
        """Expect something else from now on."""
        self.expectations.append(expectation)
        self.is_right = False
        self.probe_at = expectation.at

    def judge(self, seen: Seen, at: float) -> None:
        """Take a read into account."""
        was_right, self.is_right, self.probed_at = self.is_right, False, at
        self.is_shown = seen.is_current and not seen.is_redirected
        for place in range(len(self.expectations) - 1, -1, -1):
            if self.expectations[place].shown.accepts(seen):
                for each in self.expectations[self.fulfilled : place + 1]:
                    each.seen_at = at
                self.fulfilled = max(self.fulfilled, place + 1)
                self.is_right = place == len(self.expectations) - 1
                break
        if was_right and not self.is_right:
            marked = ", marked as gone" if seen.is_marked else ""
            self.relapses.append((at, f"{seen.status}{marked}, shows {seen.marks}"))


class Watch:
    """All watched URLs.

    Attributes:
        by_title: watched pages.
        files: watched files and style sheets, by URL.
        changes: kind and time of every change.
    """

    def __init__(self, model: WikiModel, url_of: Callable[[str], str]) -> None:
        self.by_title: dict[str, Watched] = {}
        self.files: dict[str, Watched] = {}
        self.changes: list[tuple[str, float]] = []
        self._model = model
        self._url_of = url_of
        self._keys: set[str] = set()
        self._image_urls = defaultdict[str, set[str]](set)

    def note(self, kind: str, at: float) -> None:
        """Note a change: expect at every title what the model shows now."""
        number = len(self.changes)
        self.changes.append((kind, at))
        members = self._model.members()
        keys = {page.key for title in members if (page := self._model.article(title))}
        for title in {*self._model.pages, *self.by_title}:
            shown = Shown(self._model.view(title), required=title in members)
            watched = self.by_title.get(title)
            before = watched.expectations[-1].shown if watched else None
            if before == shown or (before is None and not shown.required and kind != "start"):
                continue
            if watched is None:
                watched = self.by_title[title] = Watched(self._url_of(title), title)
            page = self._model.article(title)
            known = page is not None and page.key in self._keys
            row = _row(kind, before, shown, was_member=known)
            if not (shown.required or watched.was_required):
                row = "outside"
            watched.expect(Expectation(number, row, at, shown))
        self._keys = keys

    def expect_file(self, url: str, at: float, shown: Shown) -> None:
        """Expect another content of a file or a style sheet, because of the last change."""
        watched = self.files.setdefault(url, Watched(url, url))
        watched.expect(Expectation(len(self.changes) - 1, "image", at, shown))

    def expect_image(self, name: str, urls: Set[str], at: float, shown: Shown) -> None:
        """Expect another content of an image, because of the last change.

        Args:
            urls: where pages of the part show it; the mirror may have it where they did before.
        """
        former = self._image_urls[name] - urls
        self._image_urls[name] |= urls
        for url in sorted(self._image_urls[name]):
            self.expect_file(url, at, replace(shown, required=url not in former))

    def all(self) -> Iterator[Watched]:
        """Yield all watched URLs."""
        yield from self.by_title.values()
        yield from self.files.values()


def _row(kind: str, before: Shown | None, shown: Shown, *, was_member: bool) -> str:
    """Return what a change at a URL is measured as."""
    if kind == "start":
        return kind
    is_move = kind in _MOVES
    if shown.page == ABSENT:
        return "move" if is_move else "deletion"
    if not shown.required:
        # A page that left before may still be followed; then it is a user of templates as others.
        was_outside = before is not None and not before.required
        return _FAN_OUT.get(kind, "left") if was_outside else "left"
    if before is None or not before.required:
        return "move" if is_move and was_member else "membership"
    return "move" if is_move else _FAN_OUT.get(kind, "edit")


_MOVES = frozenset({"move", "move_away", "swap"})
_FAN_OUT = {
    "label": "fan_out_5",
    "template_5": "fan_out_5",
    "template_50": "fan_out_50",
    "template_200": "fan_out_200",
}
