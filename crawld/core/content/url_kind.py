"""The purpose of a URL in a page or a style sheet."""

from __future__ import annotations

from enum import StrEnum


class UrlKind(StrEnum):
    """The purpose of a URL."""

    LINK = "link"  # a page the reader can open
    REFRESH = "refresh"  # a page the browser opens by itself
    FORM = "form"  # the target of a form
    FRAME = "frame"  # a page shown inside this one
    IMAGE = "image"
    ICON = "icon"
    STYLE = "style"  # a style sheet
    SCRIPT = "script"
    FONT = "font"
    MEDIA = "media"  # audio, video and their text tracks
    OBJECT = "object"  # embed and object: any type
    MANIFEST = "manifest"
    DATA = "data"  # preloaded for a script
    MENTION = "mention"  # named, but neither shown nor followed: canonical, cite, EditURI
    CONTACT = "contact"  # a connection without content: preconnect, ping


REQUISITES = frozenset(UrlKind) - {
    *(UrlKind.LINK, UrlKind.REFRESH, UrlKind.FORM, UrlKind.MENTION, UrlKind.CONTACT)
}
"""Kinds that a browser loads to show a page."""
