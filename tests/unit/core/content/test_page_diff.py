"""The visible difference of two copies, without volatile blocks."""

from crawld.core.content.analysis import read_blocks
from crawld.core.content.noise_learning import ReadingPair
from crawld.core.content.page_diff import diff_pages
from crawld.core.content.volatile import VolatileRules

END = "The end of the page stays what it always was, word by word, for as long as it is read. " * 5


def page(*paragraphs):
    return read_blocks("".join(f"<p>{each}</p>" for each in paragraphs).encode(), "text/html")


def test_volatile_blocks_are_counted_and_not_shown():
    before, after = page("Seen 1 times", "old", END), page("Seen 2 times", "new", END)
    pair = ReadingPair.of(page("Seen 3 times", "a", END), page("Seen 4 times", "a", END))
    rules = pair.learn(VolatileRules(), pair=True)
    everything = diff_pages(before, after)
    assert (len(everything.hunks), everything.noisy_blocks) == (1, 0)
    found = diff_pages(before, after, [rules.to_bytes()])
    [hunk] = found.hunks
    assert (hunk.old_block, hunk.new_block, found.noisy_blocks) == (1, 1, 1)
    assert [piece.text for piece in hunk.pieces] == ["old", "new"]
    assert found.share > 0
    noise = diff_pages(before, page("Seen 2 times", "old", END), [rules.to_bytes()])
    assert (noise.share, noise.hunks, noise.noisy_blocks) == (0.0, (), 1)
    assert diff_pages(before, before).hunks == ()
