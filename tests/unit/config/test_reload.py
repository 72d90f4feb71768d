"""Which changes a running daemon applies, and which need a restart."""

from crawld.config.model import Config
from crawld.config.reload import restart_needed, runtime_changes


def config(sites=(), **tables):
    seeds = ["https://a.example/"]
    return Config.model_validate(
        {**tables, "site": [{"name": name, "seeds": seeds, **keys} for name, keys in sites]}
    )


def test_equal_configs_have_no_changes():
    same = config([("a", {})]), config([("a", {})])
    assert (runtime_changes(*same), restart_needed(*same)) == ([], [])


def test_each_change_needs_a_restart_or_not():
    old = config([("a", {}), ("gone", {})], daemon={"log_level": "info"})
    new = config(
        [("a", {"max_depth": 2}), ("b", {})],
        daemon={"log_level": "debug", "db": "other.db", "max_in_flight": 9},
        politeness={"host_delay_s": 1.0},
        schedule={"discovery_share": 0.1},
    )
    assert runtime_changes(old, new) == [
        "daemon.log_level",
        "politeness.host_delay_s",
        "site.a.max_depth",
        "site.b",
        "site.gone",
    ]
    assert restart_needed(old, new) == [
        "daemon.db",
        "daemon.max_in_flight",
        "schedule.discovery_share",
    ]
