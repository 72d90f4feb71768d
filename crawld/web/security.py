"""Security headers of the web mirror.

Mirrored pages are foreign content. Their scripts, if enabled, run in an opaque origin per page
(sandbox), so that they share no storage with each other, with the generated pages or with the
dashboard, and cannot read them. Requisites come from the mirror; scripts cannot connect anywhere.
No policy can keep a script from navigating away, as any link can, or from a preconnect, which
carries no data; `scripts = false` prevents both.

Any page may frame a mirrored page, because no policy can distinguish the frames of an opaque origin
from those of others. Clickjacking gains nothing: a mirrored page has only links to click.

Source: Content Security Policy Level 3; Connection Allowlists (WICG, 2026); HTML Standard, section
on sandboxing.
"""

from __future__ import annotations

from crawld.web.assets import SCRIPT_INTEGRITY
from crawld.web.reply import Header, headers

_LOAD_POLICY = (
    "default-src 'none'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline' data:;"
    " font-src 'self' data:; media-src 'self' data: blob:; frame-src 'self' data: blob:;"
    " object-src 'self'; manifest-src 'self'; connect-src 'none'; worker-src 'none';"
    " form-action 'self'; base-uri 'none'"
)
_SCRIPT_POLICY = "script-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"
# No CSP directive that browsers support covers WebRTC. This header does, in Chromium from 152 on;
# in other browsers only `scripts = false` keeps scripts from connecting to peers.
_NO_WEBRTC = ("connection-allowlist", '(response-origin "*://*:*/*");redirects=allow;webrtc=block')
_SANDBOX = (
    "sandbox allow-forms allow-popups allow-popups-to-escape-sandbox allow-downloads allow-modals"
)
# Without scripts, an opaque origin would only keep a page from its own SVGs and fonts.
_SANDBOX_NO_SCRIPTS = f"{_SANDBOX} allow-same-origin"

_COMMON = headers(
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-dns-prefetch-control", "off"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
)

MIRRORED = [
    *_COMMON,
    *headers(("content-security-policy", f"{_LOAD_POLICY}; {_SANDBOX_NO_SCRIPTS}")),
]
"""For mirrored pages without scripts."""

MIRRORED_WITH_SCRIPTS = [
    *_COMMON,
    *headers(
        ("content-security-policy", f"{_LOAD_POLICY}; {_SCRIPT_POLICY}; {_SANDBOX} allow-scripts"),
        _NO_WEBRTC,
    ),
]

INERT = [*_COMMON]
"""For types without scripts: PDF, since a sandbox breaks the viewer of the browser, and the style
sheet, which pages of an opaque origin load too."""

REDIRECT = [*_COMMON, *headers(("access-control-allow-origin", "*"))]
"""For redirects, which images and fonts (by CORS) of a page of an opaque origin may follow."""

# 'self' would permit scripts of mirrored pages, which have the same host; the digest does not.
_OWN_POLICY = (
    f"default-src 'none'; script-src '{SCRIPT_INTEGRITY}'; connect-src 'self'; style-src 'self';"
    " img-src 'self' data:; frame-src 'self'; form-action 'self'; base-uri 'none'"
)

OWN_DATA: list[Header] = [
    *_COMMON,
    *headers(("cross-origin-resource-policy", "same-origin")),
]
"""For data that the script of a generated page reads."""

OWN_PAGE: list[Header] = [
    *_COMMON,
    *headers(
        ("content-security-policy", f"{_OWN_POLICY}; frame-ancestors 'none'"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ),
]
"""For generated pages."""

MISSING_PAGE: list[Header] = [*_COMMON, *headers(("content-security-policy", _OWN_POLICY))]
"""For pages in place of a missing mirrored page, which may be framed too."""
