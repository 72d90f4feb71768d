"""Lines of `crawlctl status` about plug-ins."""

import pytest

from crawld.cli.status_table import _plugin_fact
from crawld.daemon.api.schemas.plugin import HookStatus, PluginStatus


def plugin(**more):
    hooks = [
        HookStatus(hook="weigh_page", calls=1_200, failures=0, total_s=1.5, longest_s=0.0123),
        HookStatus(hook="read_response", calls=34, failures=2, total_s=0.5, longest_s=0.004),
    ]
    facts = {"disabled": "", "failures": 0, "last_failure": "", "overruled": 0, "grown_bytes": 0}
    return PluginStatus(**{"name": "p", "origin": "p.py", "hooks": hooks, **facts, **more})


@pytest.mark.parametrize(
    ("given", "text", "style"),
    [
        (plugin(), "1,234 calls in 2.0 s, the longest 12.3 ms", ""),
        (
            plugin(overruled=3),
            "1,234 calls in 2.0 s, the longest 12.3 ms, 3 decisions overruled by another plug-in",
            "",
        ),
        (
            plugin(failures=1, last_failure="read_response: KeyError: '\x1b[31m'"),
            "1,234 calls in 2.0 s, the longest 12.3 ms; 1 failure, the last: read_response:"
            " KeyError: '\ufffd[31m'",
            "yellow",
        ),
        (plugin(disabled="10 failures"), "disabled: 10 failures", "red"),
    ],
)
def test_a_plugin_says_what_it_costs_or_why_it_is_disabled(given, text, style):
    name, fact = _plugin_fact(given)
    assert name == "plug-in p"
    assert (fact.plain, fact.style) == (text, style)
