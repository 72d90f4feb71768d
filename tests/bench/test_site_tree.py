import re

from crawld.bench.site_tree import PAGE_BYTES, PAGES_PER_HOST, write_site


def _files(tree):
    return {path.relative_to(tree.directory): path.read_bytes() for path in _pages(tree)}


def _pages(tree):
    return [path for path in tree.directory.rglob("*") if path.is_file()]


def test_every_url_has_a_file_of_the_planned_size_and_links(tmp_path):
    tree = write_site(tmp_path / "site", 2)
    urls = tree.urls(8080)
    assert tree.page_count == len(set(urls)) == 2 * PAGES_PER_HOST
    links, sizes = [], []
    for url in urls:
        host, _, path = url.removeprefix("http://").partition(":8080/")
        body = (tree.directory / host / (path or "index.html")).read_bytes()
        sizes.append(len(body))
        links.append(set(re.findall(rb'<a href="(/[^"]*)"', body)))
    assert 0.9 * PAGE_BYTES < sum(sizes) / len(sizes) < 1.1 * PAGE_BYTES
    assert 60 <= sum(map(len, links)) / len(links) <= 75
    known = {"/" + url.split(":8080/")[1] for url in urls}
    assert {link.decode() for found in links for link in found} == known


def test_seeds_are_the_home_pages(tmp_path):
    tree = write_site(tmp_path / "site", 2)
    assert tree.seeds(80) == ["http://127.1.0.1:80/", "http://127.1.0.2:80/"]
    assert set(tree.seeds(80)) <= set(tree.urls(80))


def test_the_site_is_reproducible_and_differs_by_host(tmp_path):
    first, second = (write_site(tmp_path / name, 1) for name in ("first", "second"))
    assert _files(first) == _files(second)
    other = write_site(tmp_path / "other", 2)
    homes = [(other.directory / address / "index.html").read_bytes() for address in other.addresses]
    assert homes[0] != homes[1]
