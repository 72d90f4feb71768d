"""Request profiles in the config: what is accepted, and what they send."""

import pytest
from pydantic import ValidationError

from crawld.config.site import SiteConfig

PROFILES = [{"name": "plain"}, {"name": "phone", "user_agent_suffix": "Mobile Safari"}]


def site(**keys):
    return SiteConfig.model_validate({"name": "s", "seeds": ["https://a.test/"], **keys})


def test_a_profile_adds_to_the_user_agent():
    found = site(profiles=PROFILES, wanted={"text": "x"}).profiles[1].profile()
    assert found.agent_suffix == "Mobile Safari"


@pytest.mark.parametrize(("http", "http2"), [(None, None), ("1.1", False), ("2", True)])
def test_a_profile_has_a_protocol_and_a_range(http, http2):
    keys = {"name": "a", "first_bytes": 4096} | ({} if http is None else {"http": http})
    found = site(profiles=[keys], wanted={"text": "x"}).profiles[0].profile()
    assert (found.http2, found.first_bytes) == (http2, 4096)


def test_the_wanted_form_has_what_is_given():
    form = site(profiles=PROFILES, wanted={"language": "de", "max_bytes": 9}).wanted.form()
    assert (form.language, form.min_bytes, form.max_bytes, form.text) == ("de", 0, 9, "")


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"profiles": PROFILES}, "need each other"),
        ({"wanted": {"language": "de"}}, "need each other"),
        ({"profiles": [*PROFILES, PROFILES[0]], "wanted": {}}, "two profiles have one name"),
        ({"profiles": [{"name": "a", "accept": "x\r\ny"}], "wanted": {}}, "printable"),
        ({"profiles": [{"name": "a", "accept_language": "ä"}], "wanted": {}}, "printable"),
        ({"profiles": [{"name": "a", "user_agent": "x"}], "wanted": {}}, "user_agent"),
        ({"profiles": PROFILES, "wanted": {"language": "German"}}, "two letters"),
        ({"profiles": [{"name": "a", "http": "3"}], "wanted": {}}, "'1.1' or '2'"),
        ({"profiles": [{"name": "a", "http": 2}], "wanted": {}}, "'1.1' or '2'"),
        ({"profiles": [{"name": "a", "first_bytes": 1023}], "wanted": {}}, "1024"),
        (
            {"profiles": [{"name": "a", "first_bytes": 2000}], "wanted": {"min_bytes": 2001}},
            'profile "a" asks for 2000 first_bytes, and wanted min_bytes is 2001: raise first',
        ),
    ],
)
def test_what_is_refused_says_why(keys, why):
    with pytest.raises(ValidationError, match=why):
        site(**keys)
