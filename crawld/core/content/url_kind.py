"""What a URL in a page or a style sheet is for."""

from __future__ import annotations

from enum import StrEnum


class UrlKind(StrEnum):
    """What a URL is for."""

    LINK = "link"  # a page to go to
    REFRESH = "refresh"  # a page the browser goes to by itself
    FORM = "form"  # where a form is sent
    FRAME = "frame"  # a page shown inside this one
    IMAGE = "image"
    ICON = "icon"
    STYLE = "style"  # a style sheet
    SCRIPT = "script"
    FONT = "font"
    MEDIA = "media"  # audio, video and their text tracks
    OBJECT = "object"  # embed and object: anything
    MANIFEST = "manifest"
    DATA = "data"  # preloaded for a script
    MENTION = "mention"  # named, neither shown nor followed: canonical, cite, EditURI
    CONTACT = "contact"  # a connection is opened, nothing is shown: preconnect, ping


REQUISITES = frozenset(
    {
        *(
            UrlKind.FRAME,
            UrlKind.IMAGE,
            UrlKind.ICON,
            UrlKind.STYLE,
            UrlKind.SCRIPT,
            UrlKind.FONT,
            UrlKind.MEDIA,
        ),
        *(UrlKind.OBJECT, UrlKind.MANIFEST, UrlKind.DATA),
    }
)
"""What a browser loads to show a page."""
