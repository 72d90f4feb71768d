"""A wiki's lists of its most used templates and files, with valid and invalid answers."""

from crawld.sources.mediawiki_api import ApiResponse
from crawld.sources.mediawiki_usage import MAX_TITLES, MAX_USES, read_usage


def answer(*rows):
    return ApiResponse({"querypage": {"name": "Mostlinkedtemplates", "results": list(rows)}})


def test_the_numbers_of_pages_are_read():
    rows = [{"value": "46", "ns": 10, "title": "Template:A"}, {"value": 5, "title": "File:B.png"}]
    assert read_usage(answer(*rows)) == {"Template:A": 46, "File:B.png": 5}


def test_unusable_rows_are_left_out():
    values = ["", "x", "-4", "4.5", None, [1], True, -3, "\u0664", "9" * 13]
    rows = [{"value": value, "title": f"T{number}"} for number, value in enumerate(values)]
    rows += [{"value": "7"}, "row", {"title": "U"}, {"value": 10**15, "title": "Many"}]
    assert read_usage(answer(*rows)) == {"Many": MAX_USES}
    rows = [{"value": "2", "title": f"T{number}"} for number in range(MAX_TITLES + 5)]
    rows[0]["title"] = "T" * 600
    assert len(read_usage(answer(*rows))) == MAX_TITLES - 1
    for query in ({}, {"querypage": []}, {"querypage": {"results": "none"}}):
        assert read_usage(ApiResponse(query)) == {}
