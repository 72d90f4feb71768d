from crawld.core.content.analysis import read_blocks
from crawld.core.content.volatile import NO_RULES
from crawld.core.dust.main_text import chrome_of, main_blocks, main_digest
from crawld.simweb.dust_site import DustSite


def blocks_of(html):
    return main_blocks(read_blocks(html.encode(), "text/html"), NO_RULES)


def digest_of(html, chrome=frozenset()):
    return main_digest(blocks_of(html), chrome)


ONE = "<p>one two three four five six seven</p>"
TWO = "<p>eight nine ten eleven twelve thirteen</p>"


def test_order_markup_title_and_links_do_not_count():
    plain = digest_of(f"<title>a</title>{ONE}{TWO}")
    assert plain is not None
    assert digest_of(f"<title>b</title>{TWO}{ONE}") == plain
    assert digest_of(f"<ul><li>{ONE[3:-4]}</li></ul><h2>{TWO[3:-4]}</h2>") == plain
    assert digest_of(f'<p><a href="/x?sid=1">{ONE[3:-4]}</a></p>{TWO}') == plain
    assert digest_of(f"{ONE}{TWO}<p>more</p>") != plain


def test_images_without_words_count():
    one, other = (digest_of(f'{ONE}{TWO}<p><img src="/i/{n}.png?x"></p>') for n in (1, 2))
    assert one != other
    assert one == digest_of(f'{ONE}{TWO}<p><img src="../i/1.png"></p>')


def test_a_short_text_proves_nothing():
    assert digest_of(ONE) is None
    assert digest_of("") is None


def test_views_of_a_simulated_page_have_one_text():
    site = DustSite(3, 400)
    names = site.names
    articles = [f"/{names.article}/{n}" for n in range(12)]
    printed = [f"/{names.printed}/{n}" for n in range(12)]
    chrome = chrome_of(blocks_of(site.html(one)) for one in articles)
    assert chrome
    chrome |= chrome_of(blocks_of(site.html(one)) for one in printed)
    for article in articles[:4]:
        text = digest_of(site.html(article), chrome)
        assert text is not None
        views = (f"/{names.printed}/{article[-1]}", f"{article}?page=1", f"/{article}/")
        assert {digest_of(site.html(one), chrome) for one in views} == {text}
    assert len({digest_of(site.html(one), chrome) for one in articles}) == 12
    tag = f"/{names.tags}/1"
    sorted_tag = f"{tag}?{names.order}=date"
    assert site.html(tag) != site.html(sorted_tag)
    assert digest_of(site.html(tag), chrome) == digest_of(site.html(sorted_tag), chrome)
