"""Visit records that give a page a history: one new copy a day."""

from crawld.core.page import Outcome, PageState
from crawld.store.versions import body, headers
from crawld.store.versions.response import StoredResponse
from crawld.store.visit import VisitRecord

BEGIN = 1_700_000_000.0
DAY_S = 86_400.0
TEXT = "".join(f"<p>paragraph {number} has text</p>" for number in range(60))


def edited_body(number):
    """Return the body of the page after an edit."""
    return f"<h1>Title</h1>{TEXT}<p>edit {number} of it</p>".encode()


def visit_record(page_id, number):
    """Return the visit that found edit `number`, `number` days after `BEGIN`."""
    encoded = body.encode(edited_body(number))
    lines = headers.pack(((b"Server", b"nginx"), (b"X-Edit", b"%d" % number)))
    return VisitRecord(
        page_id=page_id,
        visited_at=BEGIN + number * DAY_S,
        outcome=Outcome.CHANGED,
        state=PageState.VISITED,
        response=StoredResponse(
            status=200, http_version="HTTP/1.1", headers=lines, content_type="text/html"
        ),
        digest=encoded.digest,
        body=encoded,
    )
