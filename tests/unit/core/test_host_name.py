import pytest

from crawld.core.host_name import to_ascii


@pytest.mark.parametrize(
    ("name", "ascii_name"),
    [
        ("faß.de", "xn--fa-hia.de"),
        ("FAẞ.DE", "xn--fa-hia.de"),
        ("xn--fa-hia.de", "xn--fa-hia.de"),
        ("XN--FA-HIA.de", "xn--fa-hia.de"),
        ("fass.de", "fass.de"),
        ("βόλος.com", "xn--nxasmm1c.com"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("bu\u0308cher.example", "xn--bcher-kva.example"),
        ("日本語。ＪＰ", "xn--wgv71a119e.jp"),
        ("نامه\u200cای.com", "xn--mgba3gch31f060k.com"),
        ("ශ්\u200dරී.com", "xn--10cl1a0b660p.com"),
        ("i❤.ws", "xn--i-7iq.ws"),
        ("☃.net", "xn--n3h.net"),
        ("א.ב", "xn--4db.xn--5db"),
        ("a\u00adb.org", "ab.org"),
        ("r3---sn-apo3qvuoxuxbt-j5pe.org", "r3---sn-apo3qvuoxuxbt-j5pe.org"),
        ("_a.b_c.org", "_a.b_c.org"),
        ("0x7F.1", "0x7f.1"),
        ("", ""),
        ("a.ü.", "a.xn--tda."),
    ],
)
def test_names(name, ascii_name):
    assert to_ascii(name) == ascii_name
    assert to_ascii(ascii_name) == ascii_name


@pytest.mark.parametrize("letter", ["\u2c5f", "\u1c8a", "\U00010d70", "\U000105c0"])
def test_letters_of_unicode_14_and_16_are_allowed(letter):
    encoded = to_ascii(f"{letter}.org")
    assert encoded.startswith("xn--")
    assert to_ascii(encoded) == encoded


@pytest.mark.parametrize(
    "name",
    [
        "xn--a.org",  # no Punycode
        "xn--abc-.org",  # Punycode of ASCII
        "xn--.org",
        "xn--FA-hia-.de",
        "xn--7ba.org",  # of a capital letter
        "xn--xn--a-ecp.org",  # encoded twice
        "a\u200db.org",  # a joiner between letters that do not join
        "\u0301a.org",  # begins with an accent
        "א1a.org",  # directions mixed
        "א.1a.org",  # a label of a right-to-left name that begins with a digit
        "a\u2028b.org",
        "\ud800.org",
        "xn--é.org",
        "é" * 64 + ".org",
        "xn--" + "a" * 70 + ".org",
        "é." * 600,
    ],
    ids=range(16),
)
def test_what_no_current_table_allows(name):
    with pytest.raises(ValueError, match=r"."):
        to_ascii(name)
