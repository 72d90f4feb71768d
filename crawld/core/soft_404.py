"""Pages that are gone although the server says 200: soft 404s, and redirects to the front page.

Nothing in one answer tells them for sure. A host is asked for a path that nobody ever had, and what
comes is what it says of any page that is gone (Bar-Yossef et al. 2004, "Sic transit gloria telae",
section 3.1, asked in the same folder). It is asked only when an answer looks like one: a page that
became something else altogether, or a first copy whose title says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crawld.core.content.fingerprint import resemblance
from crawld.core.url import parse, url_hash

SUSPECT_DIFFERENCE = 0.5
"""A page that differs by more from its copy is another page, or none."""

SAME_RESEMBLANCE = 0.9
"""Two answers for pages that are not there share this of their text at least ..."""

SUSPECT_RESEMBLANCE = 0.4
"""... and this where one of them is under suspicion already: short ones name what was asked for."""

PROBE_MAX_AGE_S = 7 * 86_400.0

_TITLE = re.compile(
    r"\b(?:404|410|not found|page missing|no such page|no longer (?:exists|available|here)"
    r"|does not exist|doesn.t exist|nicht gefunden|introuvable|no encontrad[ao]|non trovat[ao]"
    r"|niet gevonden|nie znaleziono)\b|не найден|見つかりません|找不到",
    re.IGNORECASE,
)
_PLACE = re.compile(r"/(?:40[04]|error|not-?_?found|missing)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Soft404Probe:
    """What a host answered for a path that nobody ever had.

    Attributes:
        at: instant, Unix seconds.
        sketch: of the text, where it was a page; None: it said honestly that there is none.
        redirect_url: where it led to; None: nowhere.
    """

    at: float
    sketch: bytes | None = None
    redirect_url: str | None = None


def is_suspect_page(title: str | None, difference: float | None) -> bool:
    """Return whether a page may be gone although it came with 200.

    Args:
        title: of the page.
        difference: from the copy held, [0, 1]; None: there is none.
    """
    if difference is not None:
        return difference > SUSPECT_DIFFERENCE
    return title is not None and _TITLE.search(title) is not None


def is_suspect_redirect(url: str, target: str, *, held: bool) -> bool:
    """Return whether a redirect may say that a page is gone.

    Args:
        url: the page.
        target: where it leads to.
        held: whether it has a copy.
    """
    if parse(url).origin + "/" == url:
        return False
    home = parse(target).origin + "/"
    return (held and target == home) or _PLACE.search(target[len(home) - 1 :]) is not None


def matches_probe(
    probe: Soft404Probe, *, sketch: bytes | None, target: str | None, suspect: bool = False
) -> bool:
    """Return whether an answer is what the host says of pages that are not there.

    Args:
        probe: what it said of one.
        sketch: of the answer's text, None where it is a redirect.
        target: where the answer leads to, None where it is a page.
        suspect: whether it looks like such an answer by itself.
    """
    if target is not None:
        return target == probe.redirect_url
    if sketch is None or probe.sketch is None:
        return False
    least = SUSPECT_RESEMBLANCE if suspect else SAME_RESEMBLANCE
    return resemblance(sketch, probe.sketch) >= least


def probe_url(url: str, now: float) -> str:
    """Return a URL beside a page that nobody ever had, with the page's own suffix.

    >>> probe_url("http://a.test/docs/page.html", 0.0)[:26]
    'http://a.test/docs/crawld-'
    """
    path_at = len(parse(url).origin)
    path = url[path_at:].split("?", 1)[0]
    folder, _, name = path.rpartition("/")
    suffix = name[name.rfind(".") :] if "." in name[1:] else ""
    token = f"{url_hash(f'{url} {now}') & 0xFFFFFFFFFFFF:012x}"
    return f"{url[:path_at]}{folder}/crawld-{token}{suffix[:8]}"
