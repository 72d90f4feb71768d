"""Headers of responses."""

from crawld.web.reply import header


def test_a_header_is_one_line():
    assert header("x", "a\r\nb: c") == (b"x", b"a  b: c")
