"""The config of request profiles: ways to ask for the pages of a site, and the form wanted.

The rules of `crawld/config/model.py` apply here too.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool

from crawld.config.key import ConfigTable
from crawld.config.values import ContentType, Count, SiteName
from crawld.core.request_profiles import RequestProfile, WantedForm

MAX_HEADER_CHARACTERS = 500

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
    conditional: StrictBool = Field(
        default=True, description="Whether to ask with the validators of the copy held."
    )

    def profile(self, user_agent: str) -> RequestProfile:
        """Return the profile with all its headers; `user_agent` is that of every request."""
        headers = {"Accept": self.accept, "Accept-Language": self.accept_language}
        if self.user_agent_suffix is not None:
            headers["User-Agent"] = f"{user_agent} {self.user_agent_suffix}"
        given = tuple((name, value) for name, value in headers.items() if value is not None)
        return RequestProfile(self.name, given, conditional=self.conditional)


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
