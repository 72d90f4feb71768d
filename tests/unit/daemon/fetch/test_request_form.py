"""The form of a request: what it sends, and which requests have one form."""

import pytest

from crawld.core.request_profiles import USUAL, RequestProfile
from crawld.daemon.fetch.request_form import USUAL_FORM, RequestForm
from crawld.net.exchange import FetchRequest
from crawld.plugins import PageRequest

URL = "https://a.test/page"
AGENT = "crawld/1 (+me@a.test)"
GERMAN = RequestProfile("german", (("Accept-Language", "de"),), "Mobile")


def sent(form, *headers):
    request = FetchRequest(url=URL, headers=headers, keeps_partial=True)
    return form.applied(request, AGENT)


def shape(**more):
    return PageRequest(**({"url": URL} | more))


def test_the_usual_form_changes_nothing():
    request = FetchRequest(url=URL, headers=(("Cookie", "a"),))
    assert USUAL_FORM.applied(request, AGENT) is request
    assert USUAL_FORM.key(URL) is None


def test_a_profile_sends_its_headers_and_keeps_the_contact():
    request = sent(RequestForm(GERMAN), ("Accept-Language", "en"), ("X", "1"))
    assert request.headers == (
        ("X", "1"),
        ("Accept-Language", "de"),
        ("User-Agent", f"{AGENT} Mobile"),
    )


def test_a_profile_offers_its_protocol_and_asks_for_its_range():
    request = sent(RequestForm(RequestProfile("a", http2=True, first_bytes=4096)))
    assert (request.http2, request.first_bytes) == (True, 4096)
    assert not request.keeps_partial
    assert sent(RequestForm(GERMAN)).keeps_partial


def test_plugins_add_to_a_profile_and_replace_nothing():
    wanted = shape(headers=(("accept-language", "fr"), ("Y", "2")), agent_suffix="plug")
    request = sent(RequestForm(GERMAN, wanted), ("X", "1"))
    assert request.headers == (
        ("X", "1"),
        ("Accept-Language", "de"),
        ("Y", "2"),
        ("User-Agent", f"{AGENT} Mobile plug"),
    )


def test_a_form_without_conditions_sends_none():
    headers = (("If-None-Match", '"a"'), ("If-Modified-Since", "x"))
    assert sent(RequestForm(USUAL, shape(conditional=False)), *headers).headers == ()
    assert sent(RequestForm(RequestProfile("a", conditional=False)), *headers).headers == ()
    assert len(sent(RequestForm(USUAL, shape()), *headers).headers) == 2


ONE_FORM = [
    RequestForm(USUAL, shape()),
    RequestForm(USUAL, shape(headers=(("X-Request-Id", "1"),), conditional=False)),
    RequestForm(RequestProfile("plain")),
    RequestForm(RequestProfile("other", conditional=False)),
]


@pytest.mark.parametrize("form", ONE_FORM)
def test_what_no_server_chooses_by_is_no_other_form(form):
    assert form.key(URL) is None


FORMS = [
    RequestForm(GERMAN),
    RequestForm(RequestProfile("a", (("Accept-Language", "de"),))),
    RequestForm(RequestProfile("a", (("Accept-Language", "fr"),))),
    RequestForm(RequestProfile("a", (("Accept", "text/html"),))),
    RequestForm(RequestProfile("a", http2=True)),
    RequestForm(RequestProfile("a", http2=False)),
    RequestForm(RequestProfile("a", first_bytes=4096)),
    RequestForm(RequestProfile("a", first_bytes=4097)),
    RequestForm(USUAL, shape(variant="a")),
    RequestForm(USUAL, shape(url=f"{URL}?print=1")),
    RequestForm(USUAL, shape(agent_suffix="plug")),
]


def test_what_a_server_may_choose_by_makes_another_form():
    keys = [form.key(URL) for form in FORMS]
    assert None not in keys
    assert len(set(keys)) == len(FORMS)
    assert all(len(key) == 8 for key in keys)


def test_the_name_of_a_profile_and_the_case_of_headers_do_not_matter():
    one = RequestForm(RequestProfile("a", (("accept-language", "de"),)))
    by_plugin = RequestForm(USUAL, shape(headers=(("Accept-Language", "de"),)))
    assert one.key(URL) == by_plugin.key(URL) == FORMS[1].key(URL)
