"""Text that differs at every visit, made so that comparing two copies is costly."""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Callable

from crawld.simweb.fault import Fault, Handler
from crawld.simweb.hostile.case import HostileCase, Place, html
from crawld.simweb.message import SimRequest, SimResponse, build_response

_LETTERS = string.ascii_lowercase
_COPIES = 4


def _varied(name: str, text: Callable[[random.Random], str], *, quick: bool = False) -> HostileCase:
    """Return a case whose page has another text at each visit; a few texts are made beforehand."""

    def respond(place: Place) -> Fault:
        copies = [html(text(random.Random(seed))) for seed in range(_COPIES)]
        visits = itertools.cycle(copies)

        def handler(request: SimRequest, _: Handler) -> SimResponse:
            return build_response(request, 200, next(visits))

        return handler

    return HostileCase(name=name, family="", respond=respond, quick=quick)


def _letters(draw: random.Random, count: int, alphabet: str = _LETTERS) -> str:
    return "".join(draw.choices(alphabet, k=count))


def _numbers(draw: random.Random, count: int, between: str) -> str:
    return between.join(str(draw.randrange(10**6)) for _ in range(count))


def _shuffled(draw: random.Random, count: int, block: str) -> str:
    order = draw.sample(range(count), count)
    return "".join(block.replace("#", str(k)) for k in order)


def _words(draw: random.Random, count: int, vocabulary: int) -> str:
    return " ".join(f"word{draw.randrange(vocabulary)}" for _ in range(count))


def _dates(draw: random.Random, count: int) -> str:
    return "".join(
        f"<p>{draw.randrange(1, 29):02}.{draw.randrange(1, 13):02}.2026 "
        f"{draw.randrange(24):02}:{draw.randrange(60):02}:{draw.randrange(60):02}"
        for _ in range(count)
    )


def _mixed(draw: random.Random, count: int) -> str:
    return "".join(draw.choice(("1", "a", "-", ":", ".")) for _ in range(count))


CASES: tuple[HostileCase, ...] = (
    _varied("digit-and-letters", lambda r: f"<p>{r.randrange(10)}{'a' * 20_000}", quick=True),
    _varied("digit-and-random", lambda r: f"<p>{r.randrange(10)}{_letters(r, 20_000)}", quick=True),
    _varied("digits-and-letters", lambda r: f"<p>{_numbers(r, 4, '')}{_letters(r, 200_000)}"),
    _varied("letters-and-digit", lambda r: f"<p>{_letters(r, 40_000)}{r.randrange(10)}"),
    _varied("letters-in-blocks", lambda r: f"<p>{r.randrange(10)}{_letters(r, 3_000)}" * 40),
    _varied("sequence", lambda r: f"<pre>{_letters(r, 200_000, 'acgt')}"),
    _varied("sequence-numbered", lambda r: f"<p>1 {_letters(r, 60_000, 'ACGT')} 60001"),
    _varied("hexadecimal", lambda r: f"<p>{_letters(r, 150_000, '0123456789abcdef')}"),
    _varied("base64", lambda r: f"<p>{_letters(r, 200_000, _LETTERS + string.digits + '+/')}"),
    _varied("digits-1mb", lambda r: f"<p>{_letters(r, 300_000, string.digits)}"),
    _varied("numbers-100000", lambda r: f"<p>{_numbers(r, 100_000, ' ')}", quick=True),
    _varied("numbers-commas", lambda r: f"<p>{_numbers(r, 100_000, ',')}"),
    _varied("numbers-blocks", lambda r: f"<p>{_numbers(r, 60_000, '<p>')}"),
    _varied("numbers-cells", lambda r: f"<table><tr><td>{_numbers(r, 60_000, '<td>')}"),
    _varied("blocks-reordered", lambda r: _shuffled(r, 20_000, "<p>Paragraph # of the text.")),
    _varied("blocks-rotated", lambda r: _rotated(r, 20_000)),
    _varied("blocks-equal", lambda r: "<p>same" * 30_000 + f"<p>{r.random()}" + "<p>same" * 30_000),
    _varied("blocks-alternating", lambda r: f"<p>a<p>b<p>{r.randrange(2)}" * 20_000),
    _varied("blocks-new", lambda r: "".join(f"<p>{_letters(r, 20)}" for _ in range(40_000))),
    _varied("blocks-one-word", lambda r: "".join(f"<p>{_letters(r, 1)}" for _ in range(40_000))),
    _varied("words-shuffled", lambda r: f"<p>{_words(r, 60_000, 50)}"),
    _varied("words-new", lambda r: f"<p>{_words(r, 40_000, 10**9)}"),
    _varied("words-two", lambda r: f"<p>{_words(r, 60_000, 2)}"),
    _varied("dates", lambda r: _dates(r, 30_000)),
    _varied("times-in-line", lambda r: "<p>" + "12:00:01 " * 50_000 + str(r.random())),
    _varied("identifiers", lambda r: "".join(f"<p id=i{r.random()}>x" for _ in range(40_000))),
    _varied("tokens", lambda r: f"<input type=hidden value={_letters(r, 40)}>" * 20_000),
    _varied("mixed-classes", lambda r: f"<p>{_mixed(r, 200_000)}"),
    _varied("capitals", lambda r: f"<p>{_letters(r, 100_000, 'aA1')}"),
    _varied("accents", lambda r: f"<p>1{_letters(r, 50_000, 'äé1ßЖ中')}"),
    _varied("attributes", lambda r: "".join(f"<a href=/x?s={r.random()}>x" for _ in range(30_000))),
    _varied("lists-deep", lambda r: "<ul><li>" * 5_000 + str(r.random())),
    _varied("lines", lambda r: f"<pre>{_numbers(r, 100_000, chr(10))}"),
    _varied("length-doubles", lambda r: "<p>text" * (1 + r.randrange(200_000))),
)


def _rotated(draw: random.Random, count: int) -> str:
    first = draw.randrange(count)
    return "".join(f"<p>Block {(k + first) % count}" for k in range(count))
