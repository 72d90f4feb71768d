"""Generated pages of a static export: redirects, notes for deleted pages, the index."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{head}
<style>body{{font:16px/1.5 sans-serif;max-width:42em;margin:2em auto;padding:0 1em}}</style></head>
<body>{body}</body></html>
"""


def redirect(target: str) -> bytes:
    """Return a page that redirects at once, to a relative link or an absolute URL."""
    link = escape(target)
    return _page(
        "Moved",
        f'<p>This page has moved: <a href="{link}">{link}</a></p>',
        f'<meta http-equiv="refresh" content="0; url={link}">',
    )


def removed() -> bytes:
    """Return the note that replaces a deleted page; it does not contain the URL."""
    return _page("Page removed", "<p>The mirror no longer holds this page.</p>")


def unanalysed(url: str) -> bytes:
    """Return the note for a page in quarantine, whose copy must not be analysed."""
    link = escape(url)
    text = "crawld could not read this page; its copy is kept in the database."
    return _page("Page not shown", f'<p>{text}</p>\n<p><a href="{link}">{link}</a></p>')


def index(pages: Iterable[tuple[str, str, str]]) -> bytes:
    """Return the index of an export: link, title and original URL of each entry page."""
    items = "\n".join(
        f'<li><a href="{escape(link)}">{escape(title or url)}</a> <small>{escape(url)}</small></li>'
        for link, title, url in pages
    )
    return _page("Mirror", f"<h1>Mirror</h1>\n<ul>\n{items}\n</ul>")


def _page(title: str, body: str, head: str = "") -> bytes:
    return _PAGE.format(title=escape(title), head=head, body=body).encode()
