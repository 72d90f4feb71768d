"""The config of request profiles: ways to ask for the pages of a site, and the form wanted.

The rules of `crawld/config/model.py` apply here too.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool

from crawld.config.key import ConfigTable
from crawld.config.values import ContentType, Count, SiteName
from crawld.core.request_profiles import RequestProfile, WantedForm

MAX_HEADER_CHARACTERS = 500

LEAST_FIRST_BYTES = 1024
"""Fewer do not tell the type of a page."""

_HEADER = re.compile(r"[\x21-\x7e]+(?: [\x21-\x7e]+)*")
_LANGUAGE = re.compile(r"[a-z]{2}")


def _header(text: str) -> str:
    if not _HEADER.fullmatch(text) or len(text) > MAX_HEADER_CHARACTERS:
        raise ValueError(
            f"must be 1 to {MAX_HEADER_CHARACTERS} printable ASCII characters, with single spaces"
        )
    return text


def _language(text: str) -> str:
    if not _LANGUAGE.fullmatch(text):
        raise ValueError('must be a code of two letters (ISO 639-1), such as "de"')
    return text


HeaderText = Annotated[str, AfterValidator(_header)]
Language = Annotated[str, AfterValidator(_language)]


class ProfileConfig(ConfigTable):
    """A way to ask for pages; the first profile of a site is tried first."""

    name: SiteName = Field(description="Short name of the profile, used in commands and logs.")
    accept: HeaderText | None = Field(default=None, description="Accept header.")
    accept_language: HeaderText | None = Field(default=None, description="Accept-Language header.")
    user_agent_suffix: HeaderText | None = Field(
        default=None,
        description="Words after the User-Agent, which still names crawld and your contact.",
    )
    http: Literal["1.1", "2"] | None = Field(
        default=None,
        description='Version of HTTP, "1.1" or "2", that is offered to https hosts; default: that '
        "of [fetch] http2. A host without HTTP/2 answers by 1.1.",
    )
    first_bytes: Count | None = Field(
        default=None,
        ge=LEAST_FIRST_BYTES,
        description="Ask for these first bytes of a page only (a Range request); a longer page is "
        "kept as truncated.",
    )
    conditional: StrictBool = Field(
        default=True, description="Whether to ask with the validators of the copy held."
    )

    def profile(self) -> RequestProfile:
        """Return the profile as the crawl uses it."""
        headers = {"Accept": self.accept, "Accept-Language": self.accept_language}
        return RequestProfile(
            self.name,
            tuple((name, value) for name, value in headers.items() if value is not None),
            self.user_agent_suffix or "",
            conditional=self.conditional,
            http2=None if self.http is None else self.http == "2",
            first_bytes=self.first_bytes,
        )


class WantedConfig(ConfigTable):
    """The form in which pages are wanted, judged by what they contain."""

    content_types: tuple[ContentType, ...] = Field(
        default=(), description="Media types, any of them."
    )
    language: Language | None = Field(
        default=None, description='Language of the text, such as "de" (needs the extra language).'
    )
    min_bytes: Count | None = Field(default=None, description="Least size, decoded.")
    max_bytes: Count | None = Field(default=None, description="Largest size, decoded.")
    text: str = Field(default="", max_length=500, description="Words that the page shows.")

    def form(self) -> WantedForm:
        """Return the form as the crawl judges it."""
        return WantedForm(
            self.content_types, self.language or "", self.min_bytes or 0, self.max_bytes, self.text
        )
