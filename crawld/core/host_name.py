"""Host names to ASCII by the current IDNA tables.

UTS 46, non-transitional, as the URL Standard asks ("domain to ASCII", not strict): joiners and
right-to-left text are checked; hyphens, lengths and the ASCII characters are not (they are by
`crawld.core.url`). The tables are those of the package idna, which follows Unicode; the rules of
IDNA 2008 beyond UTS 46, which refuse symbols such as hearts, are not applied.
"""

from __future__ import annotations

import unicodedata

from idna.core import IDNAError, check_bidi, check_initial_combiner, uts46_remap, valid_contextj

MAX_NAME_LENGTH = 1_000
"""Characters of a name before its mapping, which may shorten it; a result has at most 253."""

_MAX_LABEL_LENGTH = 63
_PREFIX = "xn--"
_JOINERS = "\u200c\u200d"
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})


def to_ascii(name: str) -> str:
    """Return a host name in lower case, with `xn--` labels for those that are not ASCII.

    >>> to_ascii("FAẞ.de"), to_ascii("xn--fa-hia.DE"), to_ascii("i❤.ws")
    ('xn--fa-hia.de', 'xn--fa-hia.de', 'xn--i-7iq.ws')

    Raises:
        ValueError: no current table allows this name.
    """
    if len(name) > MAX_NAME_LENGTH:
        raise ValueError("the name is too long")
    labels = [_unicode(label) for label in _mapped(name).split(".")]
    for label in labels:
        _check(label)
    if any(map(_is_right_to_left, labels)):
        for label in filter(None, labels):
            _check_direction(label)
    return ".".join(map(_ascii, labels))


def _mapped(text: str) -> str:
    try:
        return uts46_remap(text, std3_rules=False)
    except IDNAError as error:
        raise ValueError(str(error)) from None


def _unicode(label: str) -> str:
    """Return what an `xn--` label stands for; another label is returned as it is."""
    if not label.startswith(_PREFIX):
        return label
    if len(label) > _MAX_LABEL_LENGTH or not label.isascii():
        raise ValueError("a label is no Punycode")
    text = label.removeprefix(_PREFIX).encode("ascii").decode("punycode")
    # A name may be written in one way only, and may not pretend to be encoded twice.
    if text.isascii() or text.startswith(_PREFIX) or _ascii(text) != label:
        raise ValueError("a label needs no Punycode")
    if _mapped(text) != text:
        raise ValueError("a label has characters that names may not have")
    return text


def _ascii(label: str) -> str:
    if label.isascii():
        return label
    if len(label) > _MAX_LABEL_LENGTH:
        raise ValueError("a label is too long")
    return _PREFIX + label.encode("punycode").decode("ascii")


def _check(label: str) -> None:
    if label.isascii():
        return
    try:
        check_initial_combiner(label)
        joined = all(valid_contextj(label, at) for at, char in enumerate(label) if char in _JOINERS)
    except IDNAError as error:
        raise ValueError(str(error)) from None
    if not joined:
        raise ValueError("a label has a joiner where none may be")


def _is_right_to_left(label: str) -> bool:
    return not label.isascii() and any(
        unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in label
    )


def _check_direction(label: str) -> None:
    try:
        allowed = check_bidi(label, check_ltr=True)
    except IDNAError as error:
        raise ValueError(str(error)) from None
    if not allowed:
        raise ValueError("a label mixes directions")
