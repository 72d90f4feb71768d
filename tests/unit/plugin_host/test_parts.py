"""Parts of plug-ins in their guards: a policy, an estimator and a difference that go wrong."""

import numpy as np
import pytest

from crawld.core.change.model import PageModel
from crawld.core.content.difference import difference
from crawld.core.revisit.policies import OrderedPolicy, UniformPolicy, VisitObservation
from crawld.errors import ConfigError
from crawld.plugin_host.builtin import BUILT_IN
from crawld.plugin_host.in_use import no_plugins
from crawld.plugin_host.supplied import supplied_by

SEEN = VisitObservation(True)


def policy_of(load, body, **more):
    host = load(
        built_in=BUILT_IN.items(),
        mine=f"""
        class Mine(OrderedPolicy):
            {body}

        @hookimpl
        def policies():
            return {{"policy": Mine}}
        """,
        **more,
    )
    return supplied_by(host).policies["mine:policy"](), host.plugins[0]


def rounds(policy, count, now=100.0):
    chosen = []
    for _ in range(count):
        page = policy.select(now)
        if page is not None:
            policy.record_visit(page, now, SEEN)
        chosen.append(page)
        now += 1.0
    return chosen


def test_a_good_policy_decides(load):
    policy, plugin = policy_of(
        load,
        "def key_after(self, page, now, observation): return now if page else 0.0",
    )
    policy.load(np.arange(3), [1.0, 2.0, 3.0])
    assert rounds(policy, 3) == [0, 0, 0]
    assert plugin.failures_in_all == 0


@pytest.mark.parametrize(
    "body",
    [
        "def select(self, now): return 77",
        "def select(self, now): return True",
        "def select(self, now): return 'page'",
        "def select(self, now): raise KeyError",
        "def record_visit(self, *a): raise KeyError",
        "def load(self, *a): raise KeyError",
        "def __init__(self): raise KeyError",
    ],
)
def test_a_bad_policy_leaves_a_round_robin_behind(load, body):
    policy, plugin = policy_of(load, body, blocks={"max_failures": 3})
    policy.load(np.arange(4), [1.0, 2.0, 3.0, 4.0])
    policy.add(9, None)
    seen = rounds(policy, 25)
    assert plugin.failures_in_all >= 1
    assert set(seen[-5:]) == {0, 1, 2, 3, 9}
    assert len(policy) == 5


def test_no_page_is_selected_while_it_is_in_flight(load):
    policy, plugin = policy_of(load, "def select(self, now): return 1")
    policy.load(np.arange(3), [1.0, 2.0, 3.0])
    assert [policy.select(1.0) for _ in range(4)] == [1, 0, 2, None]
    assert plugin.failures_in_all == 1
    policy.release(1)
    assert policy.select(2.0) == 1


def test_a_policy_may_wait(load):
    policy, plugin = policy_of(load, "def select(self, now): return None")
    policy.load(np.arange(3), [1.0, 2.0, 3.0])
    assert policy.select(1.0) is None
    assert policy.next_due_at() == np.inf
    assert plugin.failures_in_all == 0
    plugin.disable("test")
    assert policy.select(1.0) == 0
    assert policy.next_due_at() == -np.inf


def test_an_ordered_policy_follows_its_key():
    class OddFirst(OrderedPolicy):
        def key_after(self, page, now, observation):
            return now - 1_000.0 * (page % 2)

    policy = OddFirst()
    policy.load(np.arange(4), [1.0, 2.0, 3.0, 4.0])
    assert rounds(policy, 8) == [0, 1, 1, 1, 1, 1, 1, 1]
    assert rounds(OrderedPolicy(), 1) == [None]


def test_an_estimator_without_a_usable_answer_leaves_the_models_rate(load):
    host = load(
        built_in=BUILT_IN.items(),
        mine="""
        @hookimpl
        def estimators():
            return {"half": lambda m: m.rate / 2, "zero": lambda m: 0.0, "text": lambda m: "x"}
        """,
    )
    model = PageModel()
    found = supplied_by(host).estimators
    assert found["mine:half"](model) == model.rate / 2
    assert found["mine:zero"](model) == found["mine:text"](model) == model.rate
    assert host.plugins[0].failures == 2


def test_a_difference_without_a_usable_answer_is_crawlds_own(load):
    host = load(
        built_in=BUILT_IN.items(),
        mine="""
        @hookimpl
        def differences():
            return {"none": lambda a, b: 0.0, "two": lambda a, b: 2.0, "bad": lambda a, b: 1 / 0}
        """,
    )
    found = supplied_by(host).differences
    assert found["mine:none"]("a", "b") == 0.0
    assert found["mine:two"]("a", "b") == found["mine:bad"]("a", "b") == 1.0
    assert host.plugins[0].failures == 2


@pytest.mark.parametrize("answer", ["None", "[1]", "{'A b': len}", "{'a': 1}", "1 / 0"])
def test_a_table_of_parts_must_be_one(load, answer):
    host = load(built_in=BUILT_IN.items(), mine=f"@hookimpl\ndef policies():\n    return {answer}")
    with pytest.raises(ConfigError, match="policies"):
        supplied_by(host)


def test_own_parts_are_called_without_a_guard():
    parts = no_plugins().supplied
    assert parts.differences == {"rsync": difference}
    assert type(parts.policies["uniform"]()) is UniformPolicy
    assert parts.differences["rsync"] is difference
