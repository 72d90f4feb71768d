"""A seeded page in the manner of an encyclopedia: infobox, sections, notes, many links."""

import random


def wiki_page(seed: int, size_bytes: int = 60_000) -> bytes:
    """Return an article of about the given size; equal seeds give equal pages."""
    rng = random.Random(seed)
    lexicon = [
        "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 10)))
        for _ in range(2000)
    ]

    def words(count: int) -> str:
        return " ".join(rng.choice(lexicon) for _ in range(count))

    def link(count: int) -> str:
        return f'<a href="/wiki/{words(2).replace(" ", "_")}" title="{words(2)}">{words(count)}</a>'

    menu = "".join(f'<li id="n-{n}">{link(2)}</li>\n' for n in range(60))
    box = "".join(
        f'<tr><th scope="row">{words(2)}</th><td>{rng.randint(1, 9999)} {link(1)}</td></tr>\n'
        for _ in range(20)
    )
    notes = "".join(
        f'<li id="cite_note-{n}"><span class="mw-cite-backlink"><b><a href="#cite_ref-{n}">^</a>'
        f'</b></span> <cite class="citation web">{words(4)} <a rel="nofollow" class="external text"'
        f' href="https://{words(1)}.example/{words(1)}">"{words(4)}"</a>. <i>{words(2)}</i>. 2019.'
        "</cite></li>\n"
        for n in range(30)
    )
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>Article {seed}</title>"
        '<meta name="generator" content="MediaWiki 1.39"><link rel="canonical" href="/wiki/A">'
        f"<script>var config = {{{'x' * 2000}}};</script></head><body><ul>{menu}</ul><main>"
        f'<h1 id="firstHeading">Article {seed}</h1><table class="infobox">{box}</table>\n'
    )
    foot = f'<ol class="references">{notes}</ol></main><footer>Last edited on 12 November 2026.'
    parts, size, note = [], len(head) + len(foot), 0
    while size < size_bytes:
        section = [f"<h2>{words(3)}</h2>\n"] if rng.random() < 0.2 else []
        for _ in range(rng.randint(3, 8)):
            note += 1
            section.append(
                f'{words(rng.randint(8, 20))} {link(2)} {words(3)}.<sup id="cite_ref-{note}">'
                f'<a href="#cite_note-{note}">[{note}]</a></sup> '
            )
        parts.append("<p>" + "".join(section) + "</p>\n")
        size += len(parts[-1])
    return (head + "".join(parts) + foot).encode()
