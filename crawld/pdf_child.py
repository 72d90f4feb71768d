"""A program that reads a PDF from standard input and writes its title and text as JSON.

`crawld/pdf_text.py` runs it for one document, with limits on processor time, memory and output: a
library that reads a format this rich is best trusted with nothing. It imports nothing of crawld.

Exit status: 0, or 1 with the reason on standard error.
"""

import contextlib
import json
import resource
import sys

CPU_S = 5
MEMORY_BYTES = 512 * 2**20
MAX_CHARACTERS = 1_000_000
"""Characters of text that are read; a book of 500 pages has about as many."""

MAX_TITLE_CHARACTERS = 1_000


def limit(cpu_s: int = CPU_S) -> None:
    """Limit what this process may use from now on."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> int:
    """Read the document; return the exit status."""
    limit()
    # After the limits, which hold for the import too.
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        document = PdfDocument(sys.stdin.buffer.read())
        pages: list[str] = []
        left = MAX_CHARACTERS
        for number in range(len(document)):
            # A page that cannot be read leaves the others readable.
            with contextlib.suppress(PdfiumError):
                page = document[number]
                text = page.get_textpage().get_text_bounded()[:left]
                page.close()
                pages.append(text)
                left -= len(text)
            if left <= 0:
                break
        title = document.get_metadata_value("Title")[:MAX_TITLE_CHARACTERS]
    except (PdfiumError, MemoryError) as error:
        print(str(error) or type(error).__name__, file=sys.stderr)
        return 1
    # Escaped, since a PDF may hold lone surrogates.
    sys.stdout.write(json.dumps({"title": title, "text": "\n".join(pages)}))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
