"""The hosts of `crawld bench profiles`, few of them: each is found, and no change is false."""

from crawld.bench.profiles import ProfilesSize, measure


async def test_hosts_are_asked_as_is_wanted_and_variants_are_no_changes():
    found = await measure(ProfilesSize(hosts=5, pages=6, delay_s=0.01, limit_s=200.0), print)
    assert found["wanted_hosts_per_100"] == 100.0
    assert found["found_again_visits"] <= 3
    assert found["early_requests"] == found["contactless_requests"] == 0
    assert found["false_changes"] == 0
    assert found["visits"] >= 2 * 5 * 7
