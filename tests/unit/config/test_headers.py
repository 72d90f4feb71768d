"""Header files: what is sent, what is refused, and that values stay secret."""

import pytest

from crawld.config.headers import read_headers
from crawld.errors import ConfigError


def write(tmp_path, content, mode=0o600):
    path = tmp_path / "site.headers"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_headers_and_password(tmp_path):
    path = write(tmp_path, b"# secret\n\nX-Api-Key: 3f9a:b\nbasic-auth: reader:p\xc3\xa4ss: word\n")
    headers = read_headers(path)
    assert headers.warnings == ()
    pairs = tuple((name, value.get_secret_value()) for name, value in headers.pairs)
    assert pairs == (
        ("X-Api-Key", "3f9a:b"),
        ("Authorization", "Basic cmVhZGVyOnDDpHNzOiB3b3Jk"),
    )
    assert "3f9a" not in f"{headers!r} {headers.pairs} {headers.pairs[0][1]}"


def test_a_file_readable_by_others_gives_a_warning(tmp_path):
    assert "chmod 600" in read_headers(write(tmp_path, b"A: b\n", 0o640)).warnings[0]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"A: b\nsecret\n", "line 2"),
        (b"A B: secret\n", "line 1"),
        (b"A:\n", "the value of A"),
        (b"A: secret\x01\n", "the value of A"),
        (b"A: secret\xe2\x82\xac\n", "the value of A"),
        (b"Host: secret\n", "set by crawld itself"),
        (b"User-Agent: secret\n", "set by crawld itself"),
        (b"Basic-Auth: secret\n", "user:password"),
        (b"\xff\xfe", "not UTF-8"),
        (b"A: b\n" * 20_000, "at most"),
    ],
)
def test_errors_name_the_line_without_its_value(tmp_path, content, part):
    with pytest.raises(ConfigError) as caught:
        read_headers(write(tmp_path, content))
    assert part in str(caught.value)
    assert "secret" not in str(caught.value)
