"""`crawld bench export`: pages per second to static files, WARC and ZIM, and a re-export.

    static   crawld export static of 5,000 articles of 28 KB      wget2 -r -k of the same site
    warc     crawld export warc of the same                       warcio's writer with the same
                                                                  bodies; wget --warc-file
    zim      crawld export zim of the first 1,000 of them, with its full-text index; needs the extra
    again    100,000 notes exported, 100 of them changed, exported again

crawld reads its database; wget and wget2, the alternatives, fetch from an nginx on this machine.
warcio shows the cost of writing alone. Peak memory is that of the exporting process; each worker of
a static export uses about as much again.
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawld.bench import crawld_process, nginx
from crawld.bench.article_mirror import ArticleMirror, store_changes, write_mirror
from crawld.bench.process import Usage, measure_run, program_error, run_child
from crawld.bench.result import Metrics, build_result
from crawld.bench.run import Progress
from crawld.bench.site_tree import SiteTree
from crawld.errors import OperatorError

_ARTICLES = 5_000
_ARTICLE_BYTES = 28_000
_ZIM_ARTICLES = 1_000
_NOTES = 100_000
_CHANGED = 100
_LIMIT_S = 3600.0
_RUNS = 3
_ADDRESS = "127.0.0.1"


def run(*, quick: bool, progress: Progress) -> dict[str, object]:
    """Run the benchmark."""
    articles = ArticleMirror(300 if quick else _ARTICLES, _ARTICLE_BYTES)
    notes = ArticleMirror(2_000 if quick else _NOTES, 1_000)
    with tempfile.TemporaryDirectory(prefix="crawld-bench-") as name:
        directory = Path(name)
        progress(f"{articles.pages:,} articles into a database")
        write_mirror(directory / "articles.db", articles)
        runs = []
        for number in range(1 if quick else _RUNS):
            progress(f"static and WARC, run {number + 1}")
            runs.append(_full_export(directory, articles))
        if find_spec("libzim") is not None:
            progress("ZIM")
            runs.append(_zim_export(directory, min(articles.pages, _ZIM_ARTICLES)))
        progress(f"{notes.pages:,} notes into a database")
        write_mirror(directory / "notes.db", notes)
        runs.append(_incremental(directory, notes, progress))
        baselines = {"warcio": [_warcio(articles)], **_fetch_peers(directory, articles, progress)}
    return build_result("export", runs, baselines)


def _export(directory: Path, form: str, db: str, out: Path) -> tuple[Usage, dict[str, int]]:
    run_directory = _empty_directory(directory / "run")
    command = crawld_process.command(
        "export", form, "--db", str(directory / db), "--out", str(out), "--json"
    )
    with run_child(command, run_directory) as child:
        usage = child.wait(_LIMIT_S)
        if usage.exit_code:
            raise program_error("crawld", f"ended with {usage.exit_code}", child)
        output = child.output()
    written: dict[str, int] = json.loads(output[output.index("{") :])["written"]
    return usage, written


def _full_export(directory: Path, articles: ArticleMirror) -> Metrics:
    static, archive = directory / "static", directory / "articles.warc.gz"
    shutil.rmtree(static, ignore_errors=True)
    archive.unlink(missing_ok=True)
    static_usage, written = _export(directory, "static", "articles.db", static)
    _check(written["pages"], articles.pages)
    warc_usage, records = _export(directory, "warc", "articles.db", archive)
    _check(records["response"], articles.pages)
    return {
        "static_pages_per_s": articles.pages / static_usage.wall_s,
        "warc_pages_per_s": articles.pages / warc_usage.wall_s,
        "static_peak_rss_mb": static_usage.peak_rss_mb,
        "warc_peak_rss_mb": warc_usage.peak_rss_mb,
        "static_pages_per_cpu_s": articles.pages / static_usage.cpu_s,
        "warc_pages_per_cpu_s": articles.pages / warc_usage.cpu_s,
    }


def _zim_export(directory: Path, pages: int) -> Metrics:
    write_mirror(directory / "zim.db", ArticleMirror(pages, _ARTICLE_BYTES))
    usage, written = _export(directory, "zim", "zim.db", directory / "articles.zim")
    _check(written["pages"], pages)
    return {
        "zim_pages_per_s": pages / usage.wall_s,
        "zim_pages_per_cpu_s": pages / usage.cpu_s,
        "zim_peak_rss_mb": usage.peak_rss_mb,
    }


def _incremental(directory: Path, notes: ArticleMirror, progress: Progress) -> Metrics:
    """Export all notes, change a few, and export again."""
    out = directory / "notes"
    progress("first export of the notes")
    first, written = _export(directory, "static", "notes.db", out)
    _check(written["pages"], notes.pages)
    step = max(notes.pages // _CHANGED, 1)
    changed = range(1, notes.pages, step)
    store_changes(directory / "notes.db", notes, changed)
    progress(f"second export, after {len(changed)} changes")
    second, written = _export(directory, "static", "notes.db", out)
    _check(written["pages"], len(changed))
    return {
        "incremental_static_s": second.wall_s,
        "incremental_peak_rss_mb": second.peak_rss_mb,
        "notes_peak_rss_mb": first.peak_rss_mb,
    }


def _check(written: int, wanted: int) -> None:
    if written != wanted:
        raise OperatorError(f"{written} of {wanted} pages were written")


# --- baselines -------------------------------------------------------------------------------


def _warcio(articles: ArticleMirror) -> Metrics:
    """Write the same three records per page with warcio, into memory."""
    bodies = [articles.body(number) for number in range(min(articles.pages, 2_000))]
    began_s = time.perf_counter()
    writer = WARCWriter(io.BytesIO(), gzip=True, warc_version="1.1")
    for number, body in enumerate(bodies):
        url = articles.url(number)
        headers = StatusAndHeaders(
            "200 OK", [("Content-Type", "text/html; charset=utf-8")], protocol="HTTP/1.1"
        )
        writer.write_record(
            writer.create_warc_record(
                url, "response", payload=io.BytesIO(body), http_headers=headers
            )
        )
        request = StatusAndHeaders(
            f"GET {articles.path(number)} HTTP/1.1",
            [("Host", "mirror.example")],
            is_http_request=True,
        )
        writer.write_record(writer.create_warc_record(url, "request", http_headers=request))
        writer.write_record(
            writer.create_warc_record(url, "metadata", payload=io.BytesIO(b"outcome: changed\r\n"))
        )
    return {"warc_pages_per_s": len(bodies) / (time.perf_counter() - began_s)}


def _fetch_peers(
    directory: Path, articles: ArticleMirror, progress: Progress
) -> dict[str, list[Metrics]]:
    """Fetch the same site from an nginx with the installed peers."""
    tree = SiteTree(directory / "tree", (_ADDRESS,))
    for number in range(articles.pages):
        path = tree.directory / _ADDRESS / (articles.path(number)[1:] or "index.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(articles.body(number))
    found: dict[str, list[Metrics]] = {}
    with nginx.serve(tree, directory / "nginx") as port:
        origin = f"http://{_ADDRESS}:{port}"
        urls = directory / "urls.txt"
        urls.write_text("\n".join(origin + articles.path(n) for n in range(articles.pages)) + "\n")
        if program := shutil.which("wget2"):
            progress("wget2 -r -k")
            command = [program, "--quiet", "--recursive", "--level=1", "--convert-links"]
            command += ["--adjust-extension", "--no-xattr", "--max-threads=8"]
            command += [f"--input-file={urls}"]
            found["wget2"] = [_rate(command, directory, articles, "static_pages_per_s")]
        if program := shutil.which("wget"):
            progress("wget --warc-file")
            command = [program, "--quiet", "--warc-file=site", "--output-document=/dev/null"]
            command += [f"--input-file={urls}"]
            found["wget"] = [_rate(command, directory, articles, "warc_pages_per_s")]
    return found


def _rate(command: list[str], directory: Path, articles: ArticleMirror, metric: str) -> Metrics:
    run_directory = _empty_directory(directory / "peer")
    # Both exit with 8 if any page, including robots.txt, was not found.
    usage = measure_run(command, run_directory, limit_s=_LIMIT_S, accept=(0, 8))
    return {metric: articles.pages / usage.wall_s}


def _empty_directory(path: Path) -> Path:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path
