"""The stages: how answers are joined, and which variant of a request a host gets."""

import pytest

from crawld.plugin_host import examples
from crawld.plugin_host.queue_stage import found_urls, queue_stage
from crawld.plugin_host.request_stage import RequestStage
from crawld.plugin_host.response_stage import ResponseStage
from crawld.plugins import PageRequest

OLD = "<p>Old text of some words</p>"
NEW = "<p>New text of some words</p>"


def joined(host, kept=None, previous=OLD):
    reading = examples.reading(NEW, previous)
    stage = ResponseStage(host.hooks("read_response"))
    answers = [(hook, stage.ask(hook, reading, kept or {})) for hook in stage.serving("docs")]
    return stage.joined(answers, reading, kept or {})


def verdict(text):
    return f"@hookimpl\ndef read_response(reading):\n    return {text}"


class TestRequests:
    VARIANTS = """
        @hookimpl
        def prepare_request(request):
            return [
                PageRequest(request.url, (("Accept-Language", each),), variant=each)
                for each in ("nb", "en", "de")
            ]
        """

    def asked(self, stage, host="a.test"):
        page = examples.page_facts()
        return stage.shape(type(page)(page.url, "docs", host))

    def test_a_host_gets_the_first_variant_that_it_does_not_refuse(self, load):
        stage = RequestStage(load(lang=self.VARIANTS).hooks("prepare_request"), lambda *_: None)
        seen = []
        for status in (406, 403, 200, 304, 500, None, 200):
            request = self.asked(stage)
            seen.append(request.variant)
            stage.judge(request, "a.test", status)
        assert seen == ["nb", "en", "de", "de", "de", "de", "de"]
        assert self.asked(stage, "b.test").variant == "nb"

    def test_plugins_change_the_request_one_after_the_other(self, load):
        code = "@hookimpl\ndef prepare_request(request):\n    return request.with_header{}"
        host = load(one=code.format(("A", "1")), two=code.format(("B", "2")))
        stage = RequestStage(host.hooks("prepare_request"), lambda *_: None)
        assert self.asked(stage).headers == (("A", "1"), ("B", "2"))

    @pytest.mark.parametrize(
        ("second", "overruled"), [(("b", "2"), 0), (("a", "1"), 0), (("a", "2"), 1)]
    )
    def test_who_sets_a_header_anew_overrules_who_set_it_before(self, load, second, overruled):
        code = "@hookimpl\ndef prepare_request(request):\n    return request.with_header{}"
        host = load(one=code.format(("A", "1")), two=code.format(second))
        stage = RequestStage(host.hooks("prepare_request"), lambda *_: None)
        self.asked(stage)
        assert [hook.plugin.overruled for hook in host.hooks("prepare_request")] == [overruled, 0]

    def test_no_opinion_is_no_change(self, load):
        host = load(none="@hookimpl\ndef prepare_request(request):\n    return None")
        assert self.asked(RequestStage(host.hooks("prepare_request"), lambda *_: None)) is None

    @pytest.mark.parametrize(
        "more",
        [
            "headers=(('Cookie', 'a=b'),)",
            "headers=(('If-None-Match', '1'),)",
            "headers=(('A b', '1'),)",
            "headers=(('A', 'x\\r\\nHost: b'),)",
            "headers=(('A', 'x' * 1001),)",
            "headers=(('A', '1'),) * 21",
            "headers='A: 1'",
            "agent_suffix='(+evil@example.org)'",
            "agent_suffix='x' * 101",
            "agent_suffix='a\\nb'",
            "conditional='no'",
            "variant='x' * 41",
        ],
    )
    def test_what_is_not_allowed_is_refused_as_a_whole(self, load, more):
        code = (
            f"@hookimpl\ndef prepare_request(request):\n    return PageRequest(request.url, {more})"
        )
        host = load(bad=code)
        assert self.asked(RequestStage(host.hooks("prepare_request"), lambda *_: None)) is None
        assert host.plugins[0].failures == 1

    def test_header_names_are_compared_without_case(self):
        request = PageRequest("https://a.test/", (("accept", "a"),)).with_header("Accept", "b")
        assert request.headers == (("Accept", "b"),)


class TestResponses:
    def test_a_digest_is_compared_with_the_kept_one(self, load):
        host = load(one=verdict("Verdict(digest=b'x')"))
        assert joined(host).changed is None
        assert joined(host, {"one": {"digest": b"x".hex()}}).changed is False
        assert joined(host, {"one": {"digest": b"y".hex()}}).changed is True
        assert joined(host, {"one": {"digest": b"y".hex()}}, previous=None).changed is None

    def test_a_first_copy_cannot_be_unchanged(self, load):
        assert joined(load(one=verdict("Verdict(changed=False)")), previous=None).changed is None

    def test_the_first_wins_and_the_other_is_told_of(self, load):
        host = load(
            one=verdict("Verdict(changed=True, tags={'a': '1'})"),
            two=verdict("Verdict(changed=False, links=['/b'], tags={'a': '2'})"),
            three=verdict("Verdict(links=['/c'], store=False, why='no')"),
        )
        found = joined(host)
        assert (found.changed, found.links) == (True, ("/b",))
        assert found.veto == "plug-in three: no"
        assert found.tags == (("one", "a", "1"), ("two", "a", "2"))
        assert [plugin.overruled for plugin in host.plugins] == [0, 1, 1]

    def test_a_plugin_sees_its_own_tags_only(self, load):
        host = load(one=verdict("Verdict(tags=dict(reading.previous.tags))"))
        kept = {"one": {"a": "1", "digest": "00"}, "two": {"b": "2"}}
        assert joined(host, kept).tags == (("one", "a", "1"),)

    @pytest.mark.parametrize(
        "text",
        [
            "Verdict(digest='text')",
            "Verdict(digest=b'')",
            "Verdict(digest=b'x' * 65)",
            "Verdict(links='/a')",
            "Verdict(links=[1])",
            "Verdict(tags={'digest': 'x'})",
            "Verdict(tags={str(n): 'x' for n in range(17)})",
            "Verdict(tags={'a': 'x' * 1001})",
            "Verdict(tags={'a': '\\ud800'})",
            "Verdict(why=None)",
            "Verdict(store=None)",
            "{'changed': True}",
        ],
    )
    def test_a_wrong_verdict_is_dropped_as_a_whole(self, load, text):
        host = load(bad=verdict(text))
        found = joined(host)
        assert (found.changed, found.links, found.veto, found.tags) == (None, None, "", ())
        assert host.plugins[0].failures == 1


class TestQueues:
    def stage(self, host):
        names = ("weigh_page", "admit_page", "order_new_pages")
        return queue_stage("docs", *map(host.hooks, names))

    def test_weights_are_multiplied_and_bounded(self, load):
        weigh = "@hookimpl\ndef weigh_page(url):\n    return {}"
        stage = self.stage(load(one=weigh.format(2), two=weigh.format(3), three=weigh.format(None)))
        assert stage.weight("https://a.test/") == 6.0
        stage = self.stage(load(one=weigh.format(1e300), two=weigh.format(1e300)))
        assert stage.weight("https://a.test/") == 1e6

    def test_the_rules_change_with_the_options_and_the_file(self, load, write, tmp_path):
        code = "@hookimpl\ndef configure(options): pass\n@hookimpl\ndef weigh_page(url): return 2.0"
        rules = {
            self.stage(load(one=code, blocks={"options": {"a": each}})).rules for each in (1, 1, 2)
        }
        assert len(rules) >= 2

    def test_found_urls_are_bounded_and_a_generator_may_fail(self, load):
        host = load(
            endless="""
            import itertools
            @hookimpl
            def find_pages(site):
                return (f"https://a.test/{n}" for n in itertools.count())
            """,
            breaks="""
            @hookimpl
            def find_pages(site):
                yield "https://a.test/"
                raise KeyError("x")
            """,
            text="@hookimpl\ndef find_pages(site): return 'https://a.test/'",
        )
        counts = [len(found_urls(hook, "docs")) for hook in host.hooks("find_pages")]
        assert counts == [10_000, 0, 0]
        assert [plugin.failures for plugin in host.plugins] == [0, 1, 1]
