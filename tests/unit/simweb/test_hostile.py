"""The hostile web: addresses, frames, names and the answers of the world."""

import ipaddress

import dns.message
import dns.rcode
import pytest
from hpack import Decoder

from crawld.simweb.hostile import http2, names
from crawld.simweb.hostile.case import Place, Transport
from crawld.simweb.hostile.catalogue import CASES, FAMILIES, address_of
from crawld.simweb.hostile.world import CaseSite
from crawld.simweb.message import SimRequest


def request(target="/"):
    return SimRequest("GET", target, {}, "a.test", "http://a.test", 0.0, 0)


def handle(name, target="/"):
    case = CASES[name]
    place = Place(case.host, 80, "http://vault.test/", lambda *names: None)
    return CaseSite((case.host,), case, case.respond(place)).handle(request(target))


def ask(name, kind="A"):
    delay_s, data = names.answer(dns.message.make_query(name, kind).to_wire())
    return delay_s, None if data is None else dns.message.from_wire(data)


def test_every_case_has_an_address_of_its_own():
    addresses = {ipaddress.ip_address(address_of(name)) for name in CASES}
    assert len(addresses) == len(CASES)
    assert all(address.is_loopback for address in addresses)
    assert not addresses & {
        ipaddress.ip_address(names.VAULT_ADDRESS),
        ipaddress.ip_address(names.FAST_ADDRESS),
    }


def test_every_case_has_a_server_of_its_transport_and_outcomes():
    for case in CASES.values():
        assert (case.respond is None) == (case.transport is not Transport.HTTP), case.name
        assert (case.connect is None) == (case.transport is Transport.HTTP), case.name
        assert case.outcomes, case.name


def test_every_family_has_cases_that_stand_for_it():
    missing = {family for family, cases in FAMILIES.items() if not any(c.quick for c in cases)}
    assert missing == {"sizes"}


def test_a_case_answers_its_page_only():
    assert b"http-equiv" in handle("refresh-blanks").to_bytes()
    assert handle("refresh-blanks", "/robots.txt").status == 404
    assert handle("refresh-blanks", "/leaf").status == 200


def test_a_case_that_owns_its_host_answers_robots_txt():
    assert b"Crawl-delay: nan" in handle("robots-delay-nan", "/robots.txt").to_bytes()


def test_volatile_pages_differ_at_each_visit():
    case = CASES["digit-and-random"]
    respond = case.respond(Place(case.host, 80, "", lambda *names: None))
    assert respond(request(), None).to_bytes() != respond(request(), None).to_bytes()


def test_a_frame_has_length_kind_flags_and_stream():
    assert http2.frame(6, 1, 5, b"ab") == b"\0\0\2\6\1\0\0\0\5ab"


@pytest.mark.parametrize("length", [1, 126, 127, 128, 300, 40_000])
def test_fields_are_read_by_a_decoder(length):
    pair = (b"name", b"v" * length)
    assert Decoder(max_header_list_size=100_000).decode(http2.fields(pair), raw=True) == [pair]


def test_names_have_the_answers_of_their_kind():
    assert ask("a.fast.names.test")[1].answer[0][0].address == names.FAST_ADDRESS
    assert ask("a.slow.names.test")[0] > 0
    assert ask("a.drop.names.test") == (0.0, None)
    assert ask("a.absent.names.test")[1].rcode() == dns.rcode.NXDOMAIN
    assert ask("a.fail.names.test")[1].rcode() == dns.rcode.SERVFAIL
    assert len(ask("a.many.names.test")[1].answer[0]) > 20
    assert ask("a.fast.names.test", "AAAA")[1].answer == []
    assert ask("elsewhere.test")[1].rcode() == dns.rcode.NXDOMAIN
