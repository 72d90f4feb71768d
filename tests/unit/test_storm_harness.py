"""The storm harness judges by its own model of the wiki: what it accepts, and how it counts."""

from dataclasses import replace

import pytest

from crawld.simweb.ledger import LedgerRow
from tests.peer.storm.corpus import (
    CATEGORIES,
    LABEL,
    Article,
    Redirect,
    make_corpus,
    mark,
    number_of,
    words_of,
)
from tests.peer.storm.model import PARTS, WikiModel, normalized
from tests.peer.storm.need import least_requests
from tests.peer.storm.reader import Seen, see
from tests.peer.storm.report import Wait, early_requests, percentile, waits_at_outage
from tests.peer.storm.schedule import make_schedule
from tests.peer.storm.status_probe import true_freshness
from tests.peer.storm.storm import StormLog
from tests.peer.storm.watch import Expectation, Shown, Watch, Watched


def seen(marks=None, *, status=200, is_marked=False, is_redirected=False):
    return Seen(status, is_redirected, is_marked, marks or {}, -1, b"", b"")


def empty_model(parts=("category",)):
    corpus = make_corpus(40, 1, parts)
    corpus.pages.clear()
    corpus.listed.clear()
    return WikiModel(corpus, parts)


def member(key, number=0):
    return Article(key, number, ["text"], categories=["Category:Storm"])


@pytest.fixture
def model():
    model = empty_model()
    model.pages["A"], model.pages["B"] = member("a a a"), member("b b b")
    return model


@pytest.fixture
def watch(model):
    watch = Watch(model, lambda title: f"http://wiki.test/wiki/{title}")
    watch.note("start", 0.0)
    return watch


def rows(watched):
    return [each.row for each in watched.expectations]


def test_a_mark_is_read_back():
    page = see(200, f"<p>{mark('barley drift inlet', 4_711)}</p>".encode(), None)
    assert page.marks == {"barley drift inlet": 4_711}
    assert number_of(words_of(390_624)) == 390_624


def test_bold_text_in_the_banner_marks_a_page():
    page = b"<b>x</b><crawld-banner>Copy of <b style=''>the original is gone</b></crawld-banner>"
    assert see(200, page, None).is_marked
    assert not see(200, b"<b>x</b><crawld-banner>Copy</crawld-banner>", None).is_marked


def test_a_later_copy_counts_for_all_earlier_edits(model, watch):
    for number in (1, 2, 3):
        model.pages["A"].number = number
        watch.note("edit", float(number))
    watched = watch.by_title["A"]
    watched.judge(seen({"a a a": 2}), 10.0)
    assert [each.seen_at for each in watched.expectations] == [10.0, 10.0, 10.0, None]
    assert not watched.is_right
    watched.judge(seen({"a a a": 3}), 11.0)
    assert watched.is_right
    watched.judge(seen({"a a a": 2}), 12.0)
    [(_, shown)] = watched.relapses
    assert shown.startswith("200")


def test_a_page_tells_whether_only_a_template_is_wrong(watch, model):
    page = watch.by_title["A"]
    page.judge(seen({"a a a": 0}), 0.5)
    for row, only_template in (("fan_out_50", True), ("edit", False)):
        page.expect(Expectation(1, row, 1.0, page.expectations[0].shown))
        assert page.waits_for_template == only_template
    page.judge(seen({"a a a": 0}), 2.0)
    page.expect(Expectation(2, "fan_out_5", 3.0, page.expectations[0].shown))
    assert page.waits_for_template


def test_the_truth_counts_what_a_reader_opens_as_current(model, watch):
    held = ("A", "B", "C", "D", "E")
    for title in held[2:]:
        model.pages[title] = member(f"{title} {title} {title}")
    watch.note("edit", 1.0)
    reads = {
        "A": seen({"a a a": 0}),
        "B": seen({"other": 0}),
        "C": seen({"C C C": 0}, is_redirected=True),
        "D": seen({"D D D": 0}, is_marked=True),
        "E": seen(status=404),
    }
    for title, read in reads.items():
        watch.by_title[title].judge(read, 2.0)
    urls = {watch.by_title[title].url for title in held}
    # A redirect shows a copy that is counted already; a marked one nobody takes for the page.
    assert true_freshness(watch, urls) == 0.5
    assert true_freshness(watch, urls - {watch.by_title["B"].url}) == 1.0
    assert true_freshness(watch, set()) is None


def test_a_swap_needs_the_other_page(model, watch):
    model.pages["A"], model.pages["B"] = model.pages["B"], model.pages["A"]
    watch.note("swap", 1.0)
    watched = watch.by_title["A"]
    assert rows(watched) == ["start", "move"]
    watched.judge(seen({"a a a": 9}), 2.0)
    assert not watched.is_right
    watched.judge(seen({"b b b": 0}), 3.0)
    assert watched.is_right


def test_a_deleted_page_may_be_marked_or_absent(model, watch):
    del model.pages["A"]
    watch.note("delete", 1.0)
    watched = watch.by_title["A"]
    assert rows(watched) == ["start", "deletion"]
    shown = watched.expectations[-1].shown
    assert not shown.accepts(seen({"a a a": 0}))
    assert shown.accepts(seen({"a a a": 0}, is_marked=True))
    assert shown.accepts(seen(status=404))


def test_a_moved_page_is_measured_at_both_titles(model, watch):
    model.pages["C"], model.pages["A"] = model.pages["A"], Redirect("C")
    watch.note("move", 1.0)
    assert rows(watch.by_title["C"]) == ["move"]
    # No part by category has redirects: it may be absent or marked.
    assert rows(watch.by_title["A"]) == ["start", "left"]
    assert watch.by_title["A"].expectations[-1].shown.accepts(seen({"a a a": 0}))
    assert not watch.by_title["A"].expectations[-1].shown.accepts(seen({"b b b": 0}))


def test_a_label_of_a_template_gives_membership(model, watch):
    model.pages["D"] = Article("d d d", 0, ["text"], templates=[LABEL])
    watch.note("create", 1.0)
    assert "D" not in watch.by_title
    model.templates[LABEL].labels = next(iter(CATEGORIES))
    watch.note("label", 2.0)
    assert rows(watch.by_title["D"]) == ["membership"]
    model.templates[LABEL].labels = None
    watch.note("label", 3.0)
    assert rows(watch.by_title["D"]) == ["membership", "left"]


def test_a_page_that_left_is_a_user_of_its_templates(model, watch):
    template = "Template:Storm middle"
    model.pages["D"] = replace(member("d d d"), templates=[template])
    watch.note("create", 1.0)
    model.pages["D"].categories.clear()
    watch.note("remove_category", 2.0)
    model.templates[template].number = 7
    watch.note("template_50", 3.0)
    model.pages["D"].number = 8
    watch.note("edit", 4.0)
    assert rows(watch.by_title["D"]) == ["membership", "left", "fan_out_50", "left"]


def test_a_file_is_compared_by_its_bytes():
    shown = Shown(digest=b"one")
    assert not shown.accepts(seen())
    assert shown.accepts(Seen(200, False, False, {}, -1, b"one", b""))


def test_an_image_that_no_page_shows_any_more_may_be_absent_but_not_old(watch):
    old, new, other = Shown(digest=b"old"), Shown(digest=b"new"), "http://wiki.test/other.png"
    watch.expect_image("File:A.png", {"http://wiki.test/a.png", other}, 1.0, old)
    watch.expect_image("File:A.png", {other}, 2.0, new)
    former, present = watch.files["http://wiki.test/a.png"], watch.files[other]
    for watched, accepts_absence in ((former, True), (present, False)):
        shown = watched.expectations[-1].shown
        assert shown.accepts(replace(seen(), digest=b"new"))
        assert not shown.accepts(replace(seen(), digest=b"old"))
        assert shown.accepts(seen(status=404)) == accepts_absence


def test_the_list_names_redirects_and_their_targets():
    model = empty_model(("titles",))
    model.corpus.listed += ["other_name", "Bad|title"]
    model.pages["Other name"], model.pages["A"] = Redirect("A"), member("a a a")
    model = WikiModel(model.corpus, ("titles",))
    assert model.members() == {"Other name", "A"}
    assert normalized("e_1") == "E 1"


def test_a_double_redirect_shows_itself(model):
    model.pages["R"], model.pages["S"] = Redirect("A"), Redirect("R")
    shown = Shown(model.view("S"))
    assert shown.accepts(seen())
    assert shown.accepts(seen({"a a a": 5}))
    assert not shown.accepts(seen({"b b b": 0}))


def test_percentiles_are_reached():
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([float(n) for n in range(1, 21)], 0.95) == 19.0
    assert percentile([7.0], 1.0) == 7.0


def test_the_limit_after_an_outage_holds_for_all_but_the_users_of_templates():
    log = StormLog(outage=(100.0, 160.0))
    during, before = Wait(90.0, 80.0, True, "A"), Wait(50.0, 40.0, True, "B")
    never = Wait(120.0, 900.0, False, "C")
    waits = {"edit": [during, before], "fan_out_5": [never]}
    assert waits_at_outage(waits, log, 160.0) == [during]


def test_requests_within_retry_after_are_early():
    def row(at, status=200):
        return LedgerRow(at, at, at, "h", "p", "a", "/", status)

    requests = [row(0.0), row(1.0), row(1.5, 503), row(4.0), row(20.0)]
    assert [each.at for each in early_requests(requests, 1.0)] == [1.5, 4.0]


def test_a_short_storm_has_every_kind_of_change():
    kinds = [change.kind for change in make_schedule(40.0, 1)]
    assert kinds.count("edit") == 20
    assert {"restore", "swap", "template_200", "style"} <= set(kinds)
    assert make_schedule(900.0, 1)[-1].at < 900.0
    wide = [change.at for change in make_schedule(900.0, 1) if change.kind == "template_200"]
    assert wide == [240.0, 420.0]
    once = [change.kind for change in make_schedule(900.0, 1, once=True)]
    assert (once.count("template_50"), once.count("template_200")) == (1, 1)


def test_one_copy_shows_all_changes_whose_limits_it_meets():
    def need(*changes, outage=None):
        expected = [Expectation(0, row, at, Shown()) for row, at in changes]
        return least_requests([Watched("u", "t", expected)], outage, 60.0)

    assert need(("start", 0.0), ("outside", 1.0)) == 0
    assert need(("edit", 0.0), ("edit", 20.0)) == 1
    assert need(("edit", 0.0), ("edit", 20.5)) == 2
    assert need(("edit", 0.0), ("edit", 25.0), ("deletion", 15.0)) == 2
    assert need(("edit", 0.0), ("fan_out_200", 10.0), ("edit", 19.0)) == 1
    assert need(("edit", 0.0), ("fan_out_200", 30.0)) == 2  # right at the end
    assert need(("edit", 0.0), ("edit", 70.0), outage=(10.0, 50.0)) == 1


@pytest.mark.parametrize("parts", [PARTS, *((part,) for part in PARTS)])
def test_most_pages_of_a_corpus_are_in_its_part(parts):
    model = WikiModel(make_corpus(500, 3, parts), parts)
    assert 480 < len(model.pages) < 520
    assert len(model.members()) > 0.8 * len(model.pages)
    assert len(model.users("Template:Storm middle")) == 50
