"""main_text: a page changed only if its main text changed, as trafilatura finds it.

Menus, related articles, cookie notices and footers do not count. Needs trafilatura:
pip install "crawld[main-text]". The guide is main_text.md beside this file.
"""

from collections.abc import Mapping
from hashlib import blake2b

from trafilatura import extract

from crawld.plugins import Reading, Verdict, hookimpl

CRAWLD_API = 1

HTML = ("text/html", "application/xhtml+xml")

# Below so many characters trafilatura found no article: crawld's own comparison decides.
min_characters = 200
include_tables = True


@hookimpl
def configure(options: Mapping[str, object]) -> None:
    """Take `min_characters` (200) and `include_tables` (true)."""
    global min_characters, include_tables
    unknown = set(options) - {"min_characters", "include_tables"}
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    min_characters = int(str(options.get("min_characters", min_characters)))
    include_tables = bool(options.get("include_tables", include_tables))


def main_text(markup: str, url: str) -> str:
    """Return the main text of a page with single spaces, empty if there is none."""
    found = extract(
        markup,
        url=url,
        include_comments=False,
        include_tables=include_tables,
        favor_recall=True,
        deduplicate=False,
    )
    return " ".join((found or "").split())


@hookimpl
def read_response(reading: Reading) -> Verdict | None:
    """Compare the main text with that of the copy held."""
    if reading.content_type not in HTML:
        return None
    text = main_text(reading.markup, reading.page.url)
    if len(text) < min_characters:
        return None
    digest = blake2b(text.encode(), digest_size=16).digest()
    tags = {"words": str(len(text.split()))}
    before = reading.previous
    if before is None or "words" in before.tags:
        return Verdict(digest=digest, why="main text", tags=tags)
    # The copy held is older than the use of this plug-in: it has no digest yet.
    old = main_text(before.body.decode(reading.charset or "utf-8", "replace"), reading.page.url)
    return Verdict(changed=old != text, digest=digest, why="main text", tags=tags)
