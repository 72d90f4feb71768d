"""Small PDF files for tests, written by hand; pypdf encrypts them."""

import io


def make_pdf(*lines, title="", stamp=""):
    """Return a PDF of one page with some lines of text.

    Args:
        stamp: a comment that changes the bytes, not the text, like the date of a report.
    """
    shown = "".join(f"({line}) Tj 0 -20 Td " for line in lines)
    content = f"BT /F1 12 Tf 72 700 Td {shown}ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Title ({title}) >>".encode(),
    ]
    written = b"%PDF-1.4\n"
    offsets = []
    for number, each in enumerate(objects, 1):
        offsets.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table_at = len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    written += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info 6 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    written += trailer % (len(objects) + 1, table_at)
    return written + f"% {stamp}\n".encode()


def encrypted(pdf):
    """Return a PDF that needs a password."""
    from pypdf import PdfWriter  # 17 MB, for three tests

    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    writer.encrypt("secret")
    result = io.BytesIO()
    writer.write(result)
    return result.getvalue()
