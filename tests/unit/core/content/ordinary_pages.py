"""Pages as real sites write them, with many formatting elements: each function returns one."""

from collections.abc import Callable


def wiki(parts: int) -> str:
    """Return a page of MediaWiki: contents, linked text, figures, tables and references."""
    contents = "".join(
        f'<li class="toc"><a class="link" href="#s{n}">\n<div class="text">\n'
        f'<span class="numb">{n}</span>\n<span>Part {n}</span></div>\n</a></li>\n'
        for n in range(parts)
    )
    text = "".join(
        f'<h2 id="s{n}">Part {n}</h2><span class="edit">[<a href="/w?action=edit&amp;s={n}" '
        f'title="Edit {n}"><span>edit</span></a>]</span>\n'
        f'<p>The <b>part</b> of <i><a href="/wiki/A{n}" title="A > {n}">A {n}</a></i> has '
        f'<a href="/wiki/B{n}" title="It\'s B">B</a><sup id="r{n}"><a href="#n{n}">'
        f"<span>[</span>{n}<span>]</span></a></sup> and <code>x{n}</code>.</p>\n"
        f'<figure><a href="/wiki/File:{n}.jpg" class="file"><img src="/i/{n}.jpg" width="220" '
        f'srcset="/i/{n}-2.jpg 2x"></a><figcaption>A <small>picture</small></figcaption></figure>\n'
        f'<table class="wikitable"><tr><th>Year<td><a href="/wiki/{n}">{n}</a></tr></table>\n'
        f'<li id="n{n}"><b><a href="#r{n}">^</a></b> <cite><a rel="nofollow" class="external" '
        f'href="https://site{n}.example/page?a=1&amp;b=2">"Title {n}"</a></cite></li>\n'
        for n in range(parts)
    )
    return (
        "<!DOCTYPE html>\n<html><head><title>Wiki</title><script>if (a<b) x='<b>';</script></head>"
        f"<body><ul>{contents}</ul>{text}<!-- Saved <b> by the cache --></body></html>"
    )


def old_tables(parts: int) -> str:
    """Return a page of 2000: fonts that are opened in each cell and never closed."""
    return (
        "<HTML><HEAD><TITLE>Old</TITLE></HEAD><BODY BGCOLOR=white><CENTER>"
        + "".join(
            f"<TABLE WIDTH=600 BORDER=0><TR><TD BGCOLOR=#{n % 9}{n % 9}0000><FONT FACE=Arial "
            f"SIZE=2 COLOR=#{n % 40:06}><B>Item {n}</TD><TD><FONT SIZE={n % 7}>"
            f"<A HREF='/item?{n}'>item<BR>{n}</A><P><I>New!</TD></TR></TABLE>\n"
            for n in range(parts)
        )
        + "</CENTER></BODY></HTML>"
    )


def forum(parts: int) -> str:
    """Return a thread: quotes, signatures, and links around blocks."""
    return "<!doctype html><body>" + "".join(
        f"<div class='post' id='p{n}'><a href='/u/{n % 50}' class='user'><div><img src=a.png>"
        f"<strong>User {n % 50}</strong></div></a><blockquote><b>Someone wrote:</b><br>"
        f"<font color=red size=+1>really</font></blockquote>text<br><i>edited <u>later</u></i>"
        f"<a href='/p/{n}'>#{n}</a><hr><font color='#{n % 1000:06}'>signature</font></div>\n"
        for n in range(parts)
    )


def cards(parts: int) -> str:
    """Return a shop: each card is a link around blocks, with icons."""
    return "<!DOCTYPE html><body><main>" + "".join(
        f'<article><a class="card" href="/product/{n}" data-id="{n}"><div class="image"><svg><path '
        f'd="M0 0h24"/></svg></div><div><h3>Product {n}</h3><p>Text <strong>new</strong></p>'
        f'<span>1.99</span></div></a><button type="button"><i class="icon"></i></button></article>'
        for n in range(parts)
    )


def unclosed_anchors(parts: int) -> str:
    """Return a manual with named anchors that are never closed."""
    return "<html><body>" + "".join(
        f"<a name=s{n}><h2>Section {n}</h2>\n<p>See <a href=#s{n - 1}>before</a>, <tt>x</tt>.\n"
        for n in range(parts)
    )


ORDINARY_PAGES: dict[str, Callable[[int], str]] = {
    "wiki": wiki,
    "old tables": old_tables,
    "forum": forum,
    "cards": cards,
    "unclosed anchors": unclosed_anchors,
}
