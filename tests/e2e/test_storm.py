"""A short storm on a small wiki: afterwards a reader of the mirror sees what the wiki shows.

`make storm` asks for every page; here a few may still be old, since the wiki may render a page
again after the visit that an edited template caused.
"""

import time

import pytest

from tests.peer.storm.corpus import make_corpus
from tests.peer.storm.model import WikiModel
from tests.peer.storm.report import early_requests
from tests.peer.storm.storm import Storm, StormOptions
from tests.peer.storm.world import with_world

DELAY_S = 0.1
SEED = 5
PATIENCE_S = 240.0
MAX_OLD = 2


@pytest.mark.parametrize("parts", [("titles",)])
def test_the_mirror_is_right_after_a_storm(tmp_path, cleanup, parts):
    corpus = make_corpus(40, SEED, parts)
    model = WikiModel(corpus, parts)
    world = cleanup.enter_context(with_world(tmp_path, corpus, parts, SEED, DELAY_S))
    options = StormOptions(storm_s=20.0, settle_s=0.0, seed=SEED, kills=True, outage_s=3.0)
    storm = Storm(world, model, options)

    def wrong():
        return [storm.explain(each) for each in storm.watch.all() if not each.is_right]

    def is_right():
        return storm.count_wrong() == 0

    def is_nearly_right():
        return storm.count_wrong() <= MAX_OLD

    storm.expect_everything()
    assert storm.read_until(is_right, time.time() + PATIENCE_S), wrong()
    storm.run()
    assert storm.read_until(is_nearly_right, time.time() + PATIENCE_S), wrong()
    assert early_requests(world.wiki.nginx.ledger().rows(), DELAY_S) == []
    assert world.unexpected_ends == 0
