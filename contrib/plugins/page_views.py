"""page_views: pages of Wikipedia that are read more are kept fresher, by its public counts.

The counts come from a file as https://dumps.wikimedia.org/other/pageviews/ has them for each hour:
lines "en Physics 120 0", also gzipped. The guide is page_views.md beside this file.
"""

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urlsplit

from crawld.plugins import hookimpl

CRAWLD_API = 1

MOST_TITLES = 5_000_000  # 100 bytes each

LEAST_FACTOR, MOST_FACTOR = 0.1, 10.0

prefix = "https://en.wikipedia.org/wiki/"
factors: dict[str, float] = {}


@hookimpl
def configure(options: Mapping[str, object]) -> None:
    """Read the file.

    Options: `file`; `project`: first word of its lines that count ("en"); `prefix`: URL of the
    pages before their title; `min_views`: fewer count as none (2).
    """
    global prefix
    unknown = set(options) - {"file", "project", "prefix", "min_views"}
    if unknown or "file" not in options:
        raise ValueError("options are file (required), project, prefix and min_views")
    prefix = str(options.get("prefix", prefix))
    views: dict[str, int] = {}
    path, project = Path(str(options["file"])).expanduser(), str(options.get("project", "en"))
    for title, count in read_views(path, project, int(str(options.get("min_views", 2)))):
        if title in views or len(views) < MOST_TITLES:
            views[title] = views.get(title, 0) + count
    if not views:
        raise ValueError(f"{path} has no line of the project {project!r}")
    usual = median(views.values())
    factors.clear()
    # The square root: a page that is read a hundred times as much is worth ten times as much.
    factors.update(
        (title, min(max((count / usual) ** 0.5, LEAST_FACTOR), MOST_FACTOR))
        for title, count in views.items()
    )


def read_views(path: Path, project: str, min_views: int) -> Iterator[tuple[str, int]]:
    """Yield titles and counts of a project; other lines are skipped."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            words = line.split()
            is_count = len(words) >= 3 and words[0] == project and words[2].isdigit()
            if is_count and int(words[2]) >= min_views:
                yield words[1], int(words[2])


@hookimpl
def weigh_page(url: str) -> float | None:
    """Return the factor of a page by its title; pages that nobody read have the least."""
    if not url.startswith(prefix) or not factors:
        return None
    title = unquote(urlsplit(url).path[len(urlsplit(prefix).path) :])
    return factors.get(title.replace(" ", "_"), LEAST_FACTOR)
