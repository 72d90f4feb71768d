"""Text of PDFs, extracted in a process with limits."""

import contextlib

import pytest

from crawld import pdf_child
from crawld.pdf_text import PdfError, extract_pdf
from tests.pdf_files import encrypted, make_pdf

REPORT = make_pdf("Rivers and banks", "Second line", title="A report")


def test_title_and_text_are_read():
    found = extract_pdf(REPORT)
    assert found.title == "A report"
    assert found.text.split() == ["Rivers", "and", "banks", "Second", "line"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "Data format error"),
        (b"%PDF-1.7\nnonsense", "Data format error"),
        (REPORT[: len(REPORT) // 3], "Data format error"),
    ],
)
def test_what_cannot_be_read_says_why(body, why):
    with pytest.raises(PdfError, match=why):
        extract_pdf(body)


def test_a_long_file_without_pages_says_why():
    with pytest.raises(PdfError, match="Data format error"):
        extract_pdf(b"%PDF-1.4\n" + b"\0" * 1_000_000)


def test_a_locked_file_says_why():
    with pytest.raises(PdfError, match="password"):
        extract_pdf(encrypted(REPORT))


def test_pages_that_contain_each_other_end():
    looped = REPORT.replace(b"/Kids [3 0 R]", b"/Kids [2 0 R]")
    with contextlib.suppress(PdfError):
        assert not extract_pdf(looped).text


@pytest.mark.parametrize("character", ["\\ud800", "\\000"])
def test_text_can_be_stored_whatever_it_holds(character):
    found = extract_pdf(make_pdf(f"a{character}b", title=f"t{character}"))
    assert "\0" not in found.text + found.title
    assert found.text.encode()


LIMITED = f"""
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("child", {pdf_child.__file__!r})
child = module_from_spec(spec)
spec.loader.exec_module(child)
child.limit(cpu_s=1)
"""


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("while True: pass", "too much time"),
        ("b'x' * 10**10", "MemoryError"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("open('written', 'wb', buffering=0).write(b'x' * 4096)", "SIGXFSZ|too large"),
        ("print('[]')", "no text"),
        ("print('{')", "no text"),
    ],
)
def test_a_reader_that_fails_costs_its_document_only(tmp_path, program, why):
    child = tmp_path / "child.py"
    child.write_text(LIMITED + program.replace("written", str(tmp_path / "written")))
    with pytest.raises(PdfError, match=why):
        extract_pdf(REPORT, child=child)


def test_a_reader_that_waits_is_ended(tmp_path):
    child = tmp_path / "child.py"
    child.write_text("import signal\nsignal.pause()")
    with pytest.raises(PdfError, match=r"within 0\.2 s"):
        extract_pdf(REPORT, child=child, wall_s=0.2)
