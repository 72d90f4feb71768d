import pytest

from crawld.core.content.fingerprint import sketch
from crawld.core.soft_404 import (
    Soft404Probe,
    is_doubtful_page,
    is_suspect_page,
    is_suspect_redirect,
    matches_probe,
    probe_url,
)

HOME = "http://a.test/"
ERROR = sketch("Sorry, we looked everywhere for what you asked for and found nothing at all")


@pytest.mark.parametrize(
    ("title", "difference", "suspect"),
    [
        ("Moles", None, False),
        (None, None, False),
        ("404 - Page not found", None, True),
        ("Seite nicht gefunden", None, True),
        ("The 4040 processor", None, False),
        # A page about errors that still is about errors is not suspect.
        ("404 - Page not found", 0.1, False),
        ("Moles", 0.4, False),
        ("Moles", 0.9, True),
    ],
)
def test_suspect_pages(title, difference, suspect):
    assert is_suspect_page(title, difference) is suspect


@pytest.mark.parametrize(
    ("was_gone", "retitled", "difference", "doubtful"),
    [
        (True, False, None, True),
        (True, True, 0.6, True),
        # What came back as it was, is back.
        (True, False, 0.1, False),
        (False, True, 0.95, True),
        (False, True, 0.6, False),
        # A front page whose text is another each day keeps its title.
        (False, False, 0.95, False),
        (False, True, None, False),
    ],
)
def test_doubtful_pages(was_gone, retitled, difference, doubtful):
    found = is_doubtful_page(was_gone=was_gone, retitled=retitled, difference=difference)
    assert found is doubtful


@pytest.mark.parametrize(
    ("url", "target", "held", "suspect"),
    [
        ("http://a.test/x", HOME, True, True),
        ("http://a.test/x", HOME, False, False),
        ("http://a.test/x", "http://a.test/y", True, False),
        ("http://a.test/x", "http://a.test/error/404.html", False, True),
        (HOME, "http://a.test/notfound", True, False),
    ],
)
def test_suspect_redirects(url, target, held, suspect):
    assert is_suspect_redirect(url, target, has_copy=held) is suspect


def test_the_response_for_missing_pages_is_recognized():
    probe = Soft404Probe(0.0, sketch=ERROR)
    assert matches_probe(probe, sketch=ERROR, target=None)
    assert not matches_probe(probe, sketch=sketch("Moles live in the ground" * 9), target=None)
    assert not matches_probe(probe, sketch=None, target=HOME)
    away = Soft404Probe(0.0, redirect_url=HOME)
    assert matches_probe(away, sketch=None, target=HOME)
    assert not matches_probe(away, sketch=None, target="http://a.test/y")
    assert not matches_probe(Soft404Probe(0.0), sketch=ERROR, target=None)


def test_the_probe_url_is_in_the_folder_of_the_page_and_new_each_time():
    first = probe_url("http://a.test/docs/page.html?x=1", 1.0)
    assert first.startswith("http://a.test/docs/crawld-")
    assert first.endswith(".html")
    assert first != probe_url("http://a.test/docs/page.html?x=1", 2.0)
    assert probe_url(HOME, 0.0).startswith(HOME + "crawld-")
