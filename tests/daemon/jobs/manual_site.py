"""A small site whose pages are given by a function of their path, for tests about replicas."""

from crawld.simweb.message import build_error_response, build_response
from crawld.simweb.page_text import make_sentence


def words(seed, sentences=6):
    """Return a text of its own for each seed."""
    return " ".join(make_sentence(seed, number) for number in range(sentences))


class ManualSite:
    """A root that links to numbered pages, each in its folder.

    Attributes:
        hosts: its names.
        show: returns the body of page `number` as HTML, by the page's path, the origin of the
            request and its time.
        fallback: the same for all other paths; None: they are not found.
    """

    def __init__(self, host, pages, show, *, folder="/manual", fallback=None):
        self.hosts = (host,)
        self.paths = ["/", *(f"{folder}/{number:02d}.html" for number in range(1, pages))]
        self.show = show
        self.fallback = fallback

    def handle(self, request):
        path = request.target
        if path not in self.paths and self.fallback is None:
            return build_error_response(request, 404)
        number = self.paths.index(path) if path in self.paths else None
        show = self.show if number is not None else self.fallback
        text = show(number, path, request.origin, request.at)
        links = "".join(f'<a href="{each}"></a>' for each in self.paths[1:] if number == 0)
        body = f"<!DOCTYPE html><html><body>{text}{links}</body></html>"
        return build_response(request, 200, body.encode())
