"""`crawld import KIND FILE...`: import archives or URL lists into a mirror."""

from __future__ import annotations

import time
from pathlib import Path

from crawld.cli.formats import ImportFormat
from crawld.cli.offline import progress_bar
from crawld.cli.output import clean, json_text, missing_extra
from crawld.core.display import count_text
from crawld.errors import EXIT_INCOMPLETE, EXIT_OK, OperatorError
from crawld.export.importer import import_urls, import_warc

_COUNT_LABELS = {
    "new_pages": "new pages",
    "versions": "versions stored",
    "known": "already known",
    "kept_out": "blocked by a purge",
    "passed_over": "records skipped",
    "unusable": "unusable",
    "pdf_without_text": "PDFs without readable text",
}


def import_files(
    origin: ImportFormat,
    files: list[Path],
    db: Path,
    *,
    site: str | None,
    base: str | None,
    as_json: bool,
) -> int:
    """Import files; return the exit code: 3 if a part could not be read.

    Raises:
        OperatorError: an option is invalid, or a file cannot be opened.
        DatabaseInUseError: a daemon uses the database.
    """
    if base is not None and origin is not ImportFormat.ZIM:
        raise OperatorError(f"--base does not apply to {origin}", hint="only to: crawld import zim")
    now = time.time()
    with progress_bar(f"import {origin}") as progress:
        if origin is ImportFormat.WARC:
            result = import_warc(db, files, now=now, site=site, progress=progress)
        elif origin is ImportFormat.URLS:
            result = import_urls(db, files, now=now, site=site, progress=progress)
        else:
            try:
                from crawld.export.zim_reader import import_zim
            except ModuleNotFoundError as error:
                raise missing_extra(error, "zim") from error
            result = import_zim(db, files, now=now, base=base, site=site, progress=progress)
    if as_json:
        print(json_text({"db": str(db), **result.counts, "faults": result.faults}))
    else:
        counts = ", ".join(
            f"{count_text(result.counts[key])} {label}"
            for key, label in _COUNT_LABELS.items()
            if key in result.counts
        )
        print(f"{db}: {counts or 'nothing to import'}")
        for fault in result.faults:
            print(f"not read: {clean(fault)}")
    return EXIT_INCOMPLETE if result.faults else EXIT_OK
