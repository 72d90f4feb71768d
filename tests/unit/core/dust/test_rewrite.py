import doctest

import pytest

from crawld.core.dust import rewrite
from crawld.core.dust.rewrite import Rewrite, RewriteForm, rewrite_target


@pytest.mark.parametrize(
    ("form", "name", "value", "target", "expected"),
    [
        (RewriteForm.COLLAPSE, "", "", "//a///b/?x=//", "/a/b/?x=//"),
        (RewriteForm.LOWER, "", "", "/A/b?X=Y", "/a/b?X=Y"),
        (RewriteForm.LOWER, "", "", "/A%C3", "/A%C3"),
        (RewriteForm.TOKEN, "0", "", "/8f3a09bc77/a/1", "/a/1"),
        (RewriteForm.TOKEN, "0", "", "/(S(8f3a09bc77ab))/a", "/a"),
        (RewriteForm.TOKEN, "0", "", "/8f3a09bc77", "/8f3a09bc77"),
        (RewriteForm.TOKEN, "0", "", "/version2/a", "/version2/a"),
        (RewriteForm.REPLACE, "print", "article", "/print/1", "/article/1"),
        (RewriteForm.REPLACE, "print", "", "/article/1/print", "/article/1"),
        (RewriteForm.REPLACE, "print", "", "/print", "/"),
        (RewriteForm.CUT, "%23", "", "/a/12%23top?x", "/a/12?x"),
        (RewriteForm.CUT, ";sid=", "", "/a;sid=1/b;sid=2", "/a/b"),
        (RewriteForm.CUT, "%23", "", "/%23top", "/%23top"),
        (RewriteForm.REMOVE, ".print", "", "/a/12.print.html", "/a/12.html"),
        (RewriteForm.LAST, "index.html", "", "/a/index.html?x", "/a/?x"),
        (RewriteForm.SLASH, "", "", "/a/b", "/a/b/"),
        (RewriteForm.SLASH, "", "", "/a/b.html", "/a/b.html"),
        (RewriteForm.UNSLASH, "", "", "/a/b/", "/a/b"),
        (RewriteForm.UNSLASH, "", "", "/", "/"),
        (RewriteForm.DROP, "sid", "", "/a?x=1&sid=2&sid", "/a?x=1"),
        (RewriteForm.DROP, "sid", "", "/a?sid=2", "/a"),
        (RewriteForm.VALUE, "page", "1", "/a?page=1&page=2", "/a?page=2"),
        (RewriteForm.SORT, "", "", "/a?b=2&a=1&&", "/a?a=1&b=2"),
    ],
)
def test_rewrites(form, name, value, target, expected):
    assert rewrite_target(target, Rewrite(form, name, value)) == expected


def test_every_form_has_words():
    for form in RewriteForm:
        assert Rewrite(form, "n", "v").words()


def test_examples():
    assert doctest.testmod(rewrite).failed == 0
