"""A small site for tests of plug-ins: pages by path, and the requests that came."""

import itertools

from crawld.simweb.message import build_response

WORDS = " ".join(f"word{number}" for number in range(60))


def page(text=WORDS, *links, head=""):
    """Return an HTML page with a text and links."""
    anchors = " ".join(f'<a href="{link}">{link}</a>' for link in links)
    return f"<html><head><title>t</title>{head}</head><body><p>{text}</p>{anchors}</body></html>"


class PageSite:
    """Serves pages by path; a page may be a function of the request and of how often it was asked.

    Attributes:
        asked: (path, headers) of each request but those for robots.txt.
    """

    def __init__(self, pages, host="a.test", robots=""):
        self.hosts = (host,)
        self.pages, self.robots = pages, robots
        self.asked = []
        self._counts = {}

    def handle(self, request):
        if request.target == "/robots.txt":
            return build_response(request, 200, self.robots.encode(), content_type="text/plain")
        self.asked.append((request.target, dict(request.headers)))
        found = self.pages.get(request.target)
        if callable(found):
            count = self._counts.setdefault(request.target, itertools.count())
            found = found(request, next(count))
        if found is None:
            return build_response(request, 404, b"none")
        return build_response(request, 200, found.encode())

    def paths(self):
        return [path for path, _ in self.asked]
