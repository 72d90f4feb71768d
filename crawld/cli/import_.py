"""`crawld import KIND FILE...`: what others have of a site, as a start."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from crawld.cli.formats import ImportFormat
from crawld.cli.offline import progress_bar
from crawld.cli.output import clean, json_text
from crawld.core.display import count_text
from crawld.errors import EXIT_INCOMPLETE, EXIT_OK, OperatorError
from crawld.export.importer import ImportResult, import_urls, import_warc
from crawld.export.source import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The options of `crawld import`, as its manual page describes them."""

    db: Path
    site: str | None
    base: str | None
    as_json: bool


_COUNT_LABELS = {
    "new_pages": "new pages",
    "versions": "copies stored",
    "known": "known before",
    "kept_out": "taken down before",
    "passed_over": "records passed over",
    "unusable": "unusable",
}


def import_files(origin: ImportFormat, files: list[Path], options: ImportOptions) -> int:
    """Import files; return the exit code: 3 if a part of them could not be read.

    Raises:
        OperatorError: an option is wrong, or a file cannot be opened.
        DatabaseInUseError: a daemon has the database.
    """
    if options.base is not None and origin is not ImportFormat.ZIM:
        raise OperatorError(f"--base is not for {origin}", hint="it is for: crawld import zim")
    with progress_bar(f"import {origin}") as progress:
        result = _import(origin, files, options, progress)
    if options.as_json:
        print(json_text({"db": str(options.db), **result.counts, "faults": result.faults}))
    else:
        counts = ", ".join(
            f"{count_text(result.counts[key])} {word}"
            for key, word in _COUNT_LABELS.items()
            if key in result.counts
        )
        print(f"{options.db}: {counts or 'nothing to import'}")
        for fault in result.faults:
            print(f"not read: {clean(fault)}")
    return EXIT_INCOMPLETE if result.faults else EXIT_OK


def _import(
    origin: ImportFormat, files: list[Path], options: ImportOptions, progress: Progress
) -> ImportResult:
    now = time.time()
    if origin is ImportFormat.WARC:
        return import_warc(options.db, files, now=now, site=options.site, progress=progress)
    if origin is ImportFormat.URLS:
        return import_urls(options.db, files, now=now, site=options.site, progress=progress)
    try:
        from crawld.export.zim_reader import import_zim
    except ModuleNotFoundError as error:
        raise OperatorError(
            f"this import needs {error.name}, which is not installed",
            hint="pip install 'crawld[zim]'",
        ) from error
    whole = ImportResult()
    for path in files:
        part = import_zim(
            options.db, path, now=now, base=options.base, site=options.site, progress=progress
        )
        for word, n in part.counts.items():
            whole.add(word, n)
    return whole
