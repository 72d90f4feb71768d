"""markdown_feed: gives the mirror to another program as Markdown, such as a search engine.

Two formats: `markdown_feed:files` writes a file for each page, `markdown_feed:lines` feeds the
standard input of a program with JSON lines. The guide is markdown_feed.md beside this file.
"""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawld.plugins import ExportedPage, Exporter, hookimpl

CRAWLD_API = 1

LEFT_OUT = ("script", "style", "nav", "header", "footer", "aside", "form", "noscript", "template")
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
BLOCKS = {*HEADINGS, "p", "li", "pre", "blockquote", "td", "th", "dt", "dd", "figcaption"}

command: list[str] = []


@hookimpl
def configure(options: Mapping[str, object]) -> None:
    """Take `command`: the program that `lines` feeds, as a list of words."""
    words = options.get("command", [])
    if set(options) - {"command"} or not isinstance(words, list):
        raise ValueError('the only option is command = ["program", "argument"]')
    command[:] = map(str, words)


@hookimpl
def exporters() -> Mapping[str, Exporter]:
    """Return both formats."""
    return {"files": write_files, "lines": feed_lines}


def markdown(page: ExportedPage) -> str:
    """Return the main blocks of a page as Markdown; other text as it is."""
    if page.content_type not in ("text/html", "application/xhtml+xml"):
        return page.text
    tree = LexborHTMLParser(page.markup)
    tree.strip_tags(list(LEFT_OUT))
    blocks = []
    for node in tree.css(", ".join(sorted(BLOCKS))):
        if node.tag != "li" and _is_inside_block(node):
            continue
        text = _inline(node, page.url)
        if text:
            blocks.append(_block(node.tag or "", text))
    return "\n\n".join(blocks) + "\n"


def _is_inside_block(node: LexborNode) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.tag in BLOCKS:
            return True
        parent = parent.parent
    return False


def _block(tag: str, text: str) -> str:
    if tag == "pre":
        return f"```\n{text}\n```"
    return {**HEADINGS, "li": "- ", "blockquote": "> "}.get(tag, "") + text


def _inline(node: LexborNode, url: str) -> str:
    """Return the text of a block with its links; lists inside it have blocks of their own."""
    if node.tag == "pre":
        return node.text().strip("\n")
    parts = []
    for child in node.iter(include_text=True):
        if child.tag in ("ul", "ol"):
            continue
        href = child.attributes.get("href") if child.tag == "a" else None
        words = " ".join((child.text() or "").split())
        if href and words:
            parts.append(f"[{words}]({urljoin(url, href)})")
        elif child.tag == "-text":
            parts.append(child.text())
        else:
            parts.append(words)
    return " ".join(" ".join(parts).split())


def write_files(pages: Iterator[ExportedPage], out: Path) -> int:
    """Write a Markdown file for each page into a directory, in place of a former one."""
    count = 0
    for page in pages:
        path = out / file_name(page.url)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".part")
        fresh.write_text(f"{front_matter(page)}\n{markdown(page)}", encoding="utf-8")
        fresh.replace(path)
        count += 1
    return count


def file_name(url: str) -> str:
    """Return a relative path for a page, safe whatever its URL is, and different for each."""
    parts = urlsplit(url)
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{parts.path}-{parts.query}").strip("-")[:80]
    host = re.sub(r"[^a-z0-9.-]", "_", parts.hostname or "") or "_"
    digest = blake2b(url.encode(), digest_size=5).hexdigest()
    return f"{host.strip('.') or '_'}/{slug or 'index'}-{digest}.md"


def front_matter(page: ExportedPage) -> str:
    """Return the facts of a page, as YAML that JSON strings are."""
    at = datetime.fromtimestamp(page.visited_at, UTC).isoformat(timespec="seconds")
    facts = {"url": page.url, "title": page.title or "", "visited_at": at, **page.tags}
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in facts.items())
    return "\n".join(("---", *lines, "---", ""))


def feed_lines(pages: Iterator[ExportedPage], out: Path) -> int:
    """Feed a program with a JSON line for each page; its output becomes the file `out`."""
    if not command:
        raise ValueError('set options = { command = ["program"] } in the [[plugin]] block')
    count = 0
    with (
        out.open("xb") as output,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output) as program,
    ):
        assert program.stdin is not None
        for page in pages:
            facts = {"url": page.url, "title": page.title, "visited_at": page.visited_at}
            line = json.dumps({**facts, "tags": dict(page.tags), "markdown": markdown(page)})
            program.stdin.write(line.encode() + b"\n")
            count += 1
        program.stdin.close()
        if program.wait() != 0:
            raise RuntimeError(f"{command[0]} ended with {program.returncode}")
    return count
