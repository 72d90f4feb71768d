from crawld.export import warc


def test_http_2_is_written_as_1_1():
    header = warc.http_header("HTTP/2", 200, None, [], 3)
    assert header == b"HTTP/1.1 200 \r\nContent-Length: 3\r\n\r\n"


def test_a_digest_is_sha_1_in_base_32():
    assert warc.digest(b"") == "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def test_fields_stay_on_their_line():
    assert warc.warc_fields([("a", "b\r\nc: d")]) == b"a: b c: d\r\n"
