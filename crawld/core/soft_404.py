"""Detects soft 404s: pages that are gone although the server answers 200 or redirects.

One response alone never proves a soft 404. A probe fetches a path that never existed on the host;
the response shows what the host sends for missing pages (Bar-Yossef et al. 2004, "Sic transit
gloria telae", section 3.1, probed in the same folder). A probe is sent only if a response looks
suspicious: the page became entirely different, or the title of a first copy indicates an error.
Some hosts answer only part of their requests so. A probe can then miss it, so that a page that was
gone at its last visit, or lost its text and its title, needs two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from crawld.core.content.fingerprint import resemblance
from crawld.core.units import DAY_S
from crawld.core.url import split_url, url_hash

SUSPECT_DIFFERENCE = 0.5
"""A page that differs more than this from its copy is suspicious."""

SAME_RESEMBLANCE = 0.9
"""Least resemblance of two responses for missing pages ..."""

SUSPECT_RESEMBLANCE = 0.4
"""... and of two if one is suspicious already: short error pages contain the requested name."""

PROBE_MAX_AGE_S = 7 * DAY_S

LOST_DIFFERENCE = 0.9
"""A page that differs more than this from its copy, and has another title, may be lost ..."""

DOUBTED_PROBES, DOUBTED_S = 2, 300.0
"""... and is stored only if so many probes of the last seconds miss it. The page is asked again
after each; the next pages of the host need no others."""

_TITLE = re.compile(
    r"\b(?:404|410|not found|page missing|no such page|no longer (?:exists|available|here)"
    r"|does not exist|doesn.t exist|nicht gefunden|introuvable|no encontrad[ao]|non trovat[ao]"
    r"|niet gevonden|nie znaleziono)\b|не найден|見つかりません|找不到",
    re.IGNORECASE,
)
_ERROR_PATH = re.compile(r"/(?:40[04]|error|not-?_?found|missing)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Soft404Probe:
    """Response of a host to a path that never existed.

    Attributes:
        at: time of the response, Unix seconds.
        sketch: sketch of the text if it was a page; None: an honest 404.
        redirect_url: target if it was a redirect, else None.
    """

    at: float
    sketch: bytes | None = None
    redirect_url: str | None = None


def is_suspect_page(title: str | None, difference: float | None) -> bool:
    """Return whether a page with status 200 may be a soft 404.

    `difference` is that from the copy, [0, 1]; None without a copy.
    """
    if difference is not None:
        return difference > SUSPECT_DIFFERENCE
    return title is not None and _TITLE.search(title) is not None


def is_doubtful_page(*, was_gone: bool, retitled: bool, difference: float | None) -> bool:
    """Return whether one probe is too little for a suspicious page.

    Args:
        was_gone: whether the page was gone at its last visit.
        retitled: whether it has another title than its copy.
        difference: that from the copy, [0, 1]; None without a copy.
    """
    if was_gone:
        return difference is None or difference > SUSPECT_DIFFERENCE
    return retitled and difference is not None and difference > LOST_DIFFERENCE


def is_suspect_redirect(url: str, target: str, *, has_copy: bool) -> bool:
    """Return whether the redirect of a page may be a soft 404."""
    if split_url(url).origin + "/" == url:
        return False
    home = split_url(target).origin + "/"
    return (has_copy and target == home) or _ERROR_PATH.search(target[len(home) - 1 :]) is not None


def matches_probe(
    probe: Soft404Probe, *, sketch: bytes | None, target: str | None, suspect: bool = False
) -> bool:
    """Return whether a response equals the host's response for missing pages.

    Args:
        sketch: sketch of the response's text, None for a redirect.
        target: target of the redirect, None for a page.
        suspect: whether the response is suspicious by itself.
    """
    if target is not None:
        return target == probe.redirect_url
    if sketch is None or probe.sketch is None:
        return False
    least = SUSPECT_RESEMBLANCE if suspect else SAME_RESEMBLANCE
    return resemblance(sketch, probe.sketch) >= least


def probe_url(url: str, now: float) -> str:
    """Return a URL that never existed, in the folder and with the suffix of a page.

    >>> probe_url("http://a.test/docs/page.html", 0.0)[:26]
    'http://a.test/docs/crawld-'
    """
    path_at = len(split_url(url).origin)
    path = url[path_at:].split("?", 1)[0]
    folder, _, name = path.rpartition("/")
    suffix = name[name.rfind(".") :] if "." in name[1:] else ""
    token = f"{url_hash(f'{url} {now}') & 0xFFFFFFFFFFFF:012x}"
    return f"{url[:path_at]}{folder}/crawld-{token}{suffix[:8]}"
