"""What a browser may do with what the web listener sends.

Mirrored pages are other people's: their scripts, if they run at all, run in an origin of their own
(the sandbox gives each page an opaque one), so that they share no storage with each other, with the
listener's own pages or with the dashboard, and read nothing of them. Whatever a page loads comes
from the mirror; its scripts may connect nowhere. What no policy forbids a script is to send the
reader away, as any link can, and to let the browser open a connection on which nothing is said
(preconnect); `scripts = false` forbids that too.

Any page may show a mirrored one in a frame: no policy lets a page of an opaque origin show its own
frames and keeps others from showing them, and there is nothing to click on but links.

Source: Content Security Policy Level 3; Connection Allowlists (WICG, 2026); HTML Standard, section
on sandboxing.
"""

from __future__ import annotations

from crawld.web.reply import Header, headers

_LOAD_POLICY = (
    "default-src 'none'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline' data:;"
    " font-src 'self' data:; media-src 'self' data: blob:; frame-src 'self' data: blob:;"
    " object-src 'self'; manifest-src 'self'; connect-src 'none'; worker-src 'none';"
    " form-action 'self'; base-uri 'none'"
)
_SCRIPT_POLICY = "script-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:"
# No directive of CSP that browsers heed covers WebRTC; this header does, whatever it allows else
# (Chromium from 152 on; in others `scripts = false` is what keeps scripts from finding peers).
_NO_WEBRTC = ("connection-allowlist", '(response-origin "*://*:*/*");redirects=allow;webrtc=block')
_SANDBOX = (
    "sandbox allow-forms allow-popups allow-popups-to-escape-sandbox allow-downloads allow-modals"
)
# Where no script runs, an origin of its own would only keep a page from its own drawings and fonts.
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
"""For what is mirrored, no script runs."""

MIRRORED_WITH_SCRIPTS = [
    *_COMMON,
    *headers(
        ("content-security-policy", f"{_LOAD_POLICY}; {_SCRIPT_POLICY}; {_SANDBOX} allow-scripts"),
        _NO_WEBRTC,
    ),
]

INERT = [*_COMMON]
"""For types that hold no script: the browser's own PDF viewer, which a sandbox would break, and our
style sheet, which pages in an origin of their own load too."""

REDIRECT = [*_COMMON, *headers(("access-control-allow-origin", "*"))]
"""For redirects: an image, or a font by CORS, of a page in an origin of its own may lead by one."""

_OWN_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; frame-src 'self';"
    " form-action 'self'; base-uri 'none'"
)

OWN_PAGE: list[Header] = [
    *_COMMON,
    *headers(
        ("content-security-policy", f"{_OWN_POLICY}; frame-ancestors 'none'"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ),
]
"""For the listener's own pages."""

MISSING_PAGE: list[Header] = [*_COMMON, *headers(("content-security-policy", _OWN_POLICY))]
"""For those that stand where a mirrored one is missing, in a frame of another too."""
