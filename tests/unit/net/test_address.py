import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.net.address import literal_address, refusal

PUBLIC = """
    1.1.1.1 8.8.8.8 93.184.215.14 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.169.0.1
    2606:4700:4700::1111 2a00:1450:4001:80b::200e ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1
"""
PRIVATE = """
    0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254
    172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.9 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1
    198.51.100.7 203.0.113.9 240.0.0.1 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.1.2.3
    64:ff9b::7f00:1 64:ff9b::a00:1 64:ff9b:1::1 2002:7f00:1:: 2002:a00:1::1 2002:c0a8:101::
    2001:0:7f00:1:0:0:80ff:fffe 2001:db8::1 3fff::1 fc00::1 fd12::1 fe80::1 fec0::1 5f00::1 100::1
    fe80::1%eth0 ::1%lo ::ffff:127.0.0.1%1 64:ff9b::7f00:1%1 2002:7f00:1::%1
"""
NO_UNICAST = "224.0.0.1 239.255.255.255 255.255.255.255 ff02::1 ff0e::1"


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_addresses_may_be_dialed(address):
    assert refusal(address) is None


@pytest.mark.parametrize("address", PRIVATE.split())
def test_private_addresses_need_permission(address):
    assert "not a public address" in refusal(address)
    assert refusal(address, allow_private=True) is None


@pytest.mark.parametrize("address", NO_UNICAST.split())
def test_multicast_is_never_dialed(address):
    assert refusal(address, allow_private=True) is not None


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("10.1", "10.0.0.1"),
        ("[::1]", "::1"),
        ("::ffff:10.0.0.1", "::ffff:a00:1"),
        ("example.org", None),
        ("dead.beef", None),
        ("face.de", None),
        ("256.256.256.256", None),
        ("", None),
        ("127.0.0.1 ", None),
    ],
)
def test_literal_address_reads_every_numeric_form(host, address):
    found = literal_address(host)
    assert (None if found is None else str(found)) == address


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_judged_by_its_ipv4_address(address):
    mapped = refusal(f"::ffff:{address}") is None
    translated = refusal(f"64:ff9b::{int(address) >> 16:x}:{int(address) & 0xFFFF:x}") is None
    assert mapped == translated == (refusal(str(address)) is None)


@given(st.ip_addresses(v=6))
def test_only_global_unicast_and_nat64_are_permitted(address):
    first = int(address) >> 125
    if refusal(str(address)) is None:
        assert first == 1 or str(address).startswith(("64:ff9b::", "::ffff:"))
