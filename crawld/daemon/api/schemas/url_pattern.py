"""Forms of URLs that grow without new content, as `crawlctl host` shows them."""

from __future__ import annotations

from pydantic import BaseModel, Field


class UrlPatternStatus(BaseModel):
    """URLs of one form, of which few pages had new text, or which have ended for that."""

    pattern: str = Field(description="numbers as #, values of parameters left out")
    pages: int = Field(description="first copies of its pages")
    fresh: int = Field(description="those that were examined and had new text")
    budget: int = Field(description="pages without new text until links are refused; 0: they are")
    refused: int
