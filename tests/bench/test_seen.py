"""The contenders of `crawld bench seen` answer exactly, before any of them is measured."""

import json
from contextlib import closing

import numpy as np
import pytest

from crawld.bench import seen as benchmark
from crawld.bench import seen_plot
from crawld.bench.seen_btree import Btree
from crawld.bench.seen_drum import Drum
from crawld.bench.seen_structure import SeenContender, texts_of
from crawld.bench.seen_veuni import REPOSITORIES, Veuni
from crawld.bench.seen_web import SeenWeb, SomeUrls
from crawld.store.frontier import packed_list, verdicts
from crawld.store.frontier.caps import NO_CAPS
from crawld.store.seen import seen

CYCLES = 6


@pytest.fixture
def web():
    return SeenWeb(3_000, seed=3, hosts=200)


def both(cycle):
    parts = (cycle.fetched, cycle.extracted)
    return SomeUrls(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("host", "number")))


def pairs(urls):
    return set(zip(urls.host.tolist(), urls.number.tolist(), strict=True))


def whole(web):
    return next(iter(web.parts(web.known)))


def test_a_cycle_has_the_shares_that_the_issue_names(web):
    before = pairs(whole(web))
    assert len(before) == web.known == 3_000
    cycle = web.cycle(1_000)
    assert (len(cycle.fetched), len(cycle.extracted)) == (100, 900)
    assert pairs(cycle.fetched) <= before
    assert len(pairs(both(cycle)) - before) == 300
    assert web.known == 3_300
    assert pairs(whole(web)) == before | pairs(both(cycle))


def test_the_parts_of_a_web_are_its_urls(web):
    parts = list(web.parts(500))
    assert len(parts) == 6
    assert sum(map(len, parts)) == 3_000
    assert set.union(*map(pairs, parts)) == pairs(whole(web))
    texts = [text for part in parts for text in part.texts()]
    assert len(set(texts)) == 3_000
    assert {len(text) for text in texts} == set(range(48, 80))
    assert len(np.unique(whole(web).ids())) == 3_000


def test_drum_is_exact(web, tmp_path):
    drum = Drum(tmp_path)
    model = set(whole(web).ids().tolist())
    assert set(drum.check(whole(web).ids()).tolist()) == model
    for _ in range(CYCLES):
        ids = both(web.cycle(1_000)).ids()
        new = drum.check(ids).tolist()
        assert len(new) == len(set(new))
        assert set(new) == set(ids.tolist()) - model
        model |= set(new)


def test_veuni_is_exact(web, tmp_path):
    veuni = Veuni(tmp_path)
    veuni.load(web.parts(500))
    before = web.known
    new = []
    for _ in range(REPOSITORIES + CYCLES):
        new += veuni.check(both(web.cycle(200))).tolist()
    new += veuni.settle_all().tolist()
    assert len(new) == len(set(new)) == web.known - before
    assert veuni.settle_all().tolist() == []
    # The files of cycles that every repository has read are gone.
    assert len(list(tmp_path.glob("*.aux"))) <= REPOSITORIES + 1


def test_btree_is_exact(web, tmp_path):
    with closing(Btree(tmp_path / "btree.db")) as btree:
        btree.load(whole(web).ids())
        for _ in range(CYCLES):
            assert btree.check(both(web.cycle(1_000)).ids()) == 300


def test_the_loaded_file_is_as_if_its_urls_had_been_offered(web, tmp_path):
    with closing(SeenContender(tmp_path, hosts=200)) as contender:
        for part in web.parts(500):
            contender.load(part)
        contender.finish_load()
        before = set(whole(web).texts())
        for number in range(CYCLES):
            if number == CYCLES // 2:
                contender.remember()
            contender.take(*texts_of(web.cycle(1_000)))
        verdicts.settle_all(contender.connection, NO_CAPS)
        found = packed_list.list_packed(contender.connection, after=0, limit=10**9)
        urls = [each.url for each in found]
        assert len(urls) == len(set(urls))
        assert set(urls) == set(whole(web).texts()) - before
        assert contender.known() == web.known


def test_the_structure_alone_finds_as_many_new_urls(web, tmp_path, monkeypatch):
    monkeypatch.setattr(seen, "MIN_WAITING", 0)
    monkeypatch.setattr(seen, "MAX_WAITING", 0)
    with closing(SeenContender(tmp_path, hosts=200)) as contender:
        contender.load(whole(web))
        contender.finish_load()
        for immediate in (False, True):
            if immediate:
                contender.remember()
            for _ in range(CYCLES):
                contender.structure_cycle(contender.hashed(web.cycle(1_000)))
        assert contender.known() == web.known
        assert len(contender.keys) == web.known


def test_the_benchmark_measures_every_contender():
    lines = []
    value = benchmark.run(quick=True, progress=lines.append, known=5_000)
    times = {"cycle_s", "cycle_cpu_s"}
    assert value["ours"].keys() >= times | {
        "cycle_end_to_end_immediate_s",
        *("cycle_end_to_end_s", "cycle_end_to_end_cpu_s", "cycle_immediate_s", "remember_s"),
        *(
            "bytes_per_url",
            "text_bytes_per_url",
            "waiting_text_bytes_per_url",
            "canonicalise_us",
            "peak_rss_mb",
            "keys_mb",
        ),
        *("admission_us", "verdict_us", "crawl_rate_share", "crawl_cpu_share", "frontier_start_s"),
    }
    for baseline in ("drum", "veuni", "btree"):
        assert value["baselines"][baseline].keys() == times | {"bytes_per_url"}
    assert value["runs"] >= 5
    assert all(figure > 0 for figure in value["ours"].values())
    assert lines[0] == "ours: 5,000 known URLs"
    assert {point["line"] for point in seen_plot.points([value]) if point["known"] == 0.005} == {
        *("crawld, end to end", "crawld, bounded memory", "crawld, keys in memory"),
        *("DRUM", "VEUNI", "SQLite B-tree"),
    }


def test_results_are_drawn(tmp_path):
    result = {"ours": {"known_urls": 1_000_000, "cycle_cpu_s": 0.3}, "baselines": {}}
    (tmp_path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    seen_plot.main([str(tmp_path / "result.json"), str(tmp_path / "plot.svg")])
    text = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert "crawld, bounded memory" in text
    assert "DRUM, published" in text
    assert "VEUNI<" not in text
