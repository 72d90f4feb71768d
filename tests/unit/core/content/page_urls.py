"""The URLs of a page, as a rewrite looks them up."""

from crawld.core.content.rewrite import rewrite_html
from crawld.core.content.url_kind import UrlKind

PAGE_URL = "https://example.org/d/page?q"


def urls_of(page: bytes, page_url: str = PAGE_URL, **options) -> list[tuple[UrlKind, str]]:
    """Return the kind and the canonical URL of every URL with content, in order."""
    found: list[tuple[UrlKind, str]] = []
    rewrite_html(page, page_url, lambda url, kind: found.append((kind, url)), **options)
    return found
