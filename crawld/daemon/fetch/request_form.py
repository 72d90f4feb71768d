"""The form in which a page is asked for: the usual one, or one changed by profile or plug-ins.

A server may answer each form with another representation of the page (RFC 9110, section 12), so a
copy and its validators belong to the form that got them. `key` names a form: a visit in another
form than that of the copy held has no conditions, and its answer is a *variant*, which is compared
with nothing. It depends on what servers choose by, and not on other headers that a plug-in sets,
such as a number of the request, by which no two requests would have one form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final, TypeVar

from crawld.core.request_profiles import USUAL, RequestProfile
from crawld.net.exchange import FetchRequest
from crawld.plugins import PageRequest
from crawld.store.frontier.page import PageRecord

Value = TypeVar("Value")
"""Value of a header: a text, or a secret."""

KEY_BYTES: Final = 8

_NEGOTIATED: Final = frozenset({"accept", "accept-charset", "accept-language"})
_CONDITIONS: Final = frozenset({"if-none-match", "if-modified-since"})


@dataclass(frozen=True, slots=True)
class RequestForm:
    """How the request for a page differs from the usual one.

    Attributes:
        profile: of the site; `USUAL`: none.
        shape: as plug-ins want it; None: they change nothing.
    """

    profile: RequestProfile = USUAL
    shape: PageRequest | None = None

    @property
    def conditional(self) -> bool:
        """Whether profile and plug-ins allow conditions."""
        return self.profile.conditional and (self.shape is None or self.shape.conditional)

    def key(self, url: str) -> bytes | None:
        """Return the name of the form for the page of a URL, 8 bytes; None: the usual request."""
        profile, shape = self.profile, self.shape
        if shape is None and profile is USUAL:
            return None
        headers, suffix, asked_url, variant = profile.headers, profile.agent_suffix, url, ""
        if shape is not None:
            headers = _joined(headers, shape.headers)
            suffix = _suffix(profile, shape)
            asked_url, variant = shape.url, shape.variant
        chosen_by = sorted((n.lower(), v) for n, v in headers if n.lower() in _NEGOTIATED)
        other_url = "" if asked_url == url else asked_url
        facts = (chosen_by, suffix, other_url, variant, profile.http2, profile.first_bytes)
        if facts == _USUAL_FACTS:
            return None
        return blake2b(repr(facts).encode(), digest_size=KEY_BYTES).digest()

    def is_variant(self, page: PageRecord) -> bool:
        """Whether the copy held of a page has another form."""
        return page.version_id is not None and page.form != self.key(page.url)

    def applied(self, request: FetchRequest, user_agent: str) -> FetchRequest:
        """Return a request in this form.

        Headers of a profile replace those of the operator's `headers_file`; those of plug-ins do
        not replace any.

        Args:
            user_agent: that of every request, which names crawld and the contact.
        """
        profile, shape = self.profile, self.shape
        if shape is None and profile is USUAL:
            return request
        own = {name.lower() for name, _ in profile.headers}
        headers = [each for each in request.headers if each[0].lower() not in own]
        headers += profile.headers
        if not self.conditional:
            headers = [each for each in headers if each[0].lower() not in _CONDITIONS]
        present = {name.lower() for name, _ in headers}
        more = shape.headers if shape is not None else ()
        suffix = _suffix(profile, shape)
        if suffix and "user-agent" not in present:
            more = (*more, ("User-Agent", f"{user_agent} {suffix}"))
        return replace(
            request,
            headers=_joined(headers, more),
            http2=profile.http2,
            first_bytes=profile.first_bytes,
            # The rest of a body is asked for by a range, too.
            keeps_partial=request.keeps_partial and profile.first_bytes is None,
        )


USUAL_FORM: Final = RequestForm()
_USUAL_FACTS: Final[tuple[object, ...]] = ([], "", "", "", None, None)


def _joined(
    headers: Sequence[tuple[str, Value]], more: Sequence[tuple[str, str]]
) -> tuple[tuple[str, Value | str], ...]:
    """Return headers with those more whose names are not among them."""
    present = {name.lower() for name, _ in headers}
    return (*headers, *(each for each in more if each[0].lower() not in present))


def _suffix(profile: RequestProfile, shape: PageRequest | None) -> str:
    parts = (profile.agent_suffix, shape.agent_suffix.strip() if shape is not None else "")
    return " ".join(part for part in parts if part)
