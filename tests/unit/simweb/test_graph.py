import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawld.simweb.graph import VOCABULARY, SiteGraph

graphs = st.builds(
    SiteGraph,
    pages=st.integers(1, 3_000_000),
    seed=st.integers(0, 2**64),
    branching=st.integers(1, 50),
    cross_links=st.integers(0, 60),
)


def test_words_are_all_different():
    assert len(set(VOCABULARY)) == 1024


@given(graphs, st.data())
def test_a_path_leads_back_to_its_page(graph, data):
    page = data.draw(st.integers(0, graph.pages - 1))
    assert graph.page_at(graph.path(page)) == page
    assert graph.page_at(graph.path(page) + "x") is None


@given(graphs, st.text(max_size=30))
def test_other_paths_are_not_pages(graph, text):
    found = graph.page_at("/wiki/" + text)
    assert found is None or graph.path(found) == "/wiki/" + text


@given(graphs, st.data())
def test_links_stay_inside_and_hold_the_tree(graph, data):
    page = data.draw(st.integers(0, graph.pages - 1))
    links = graph.outlinks(page)
    assert len(set(links)) == len(links)
    assert page not in links
    assert all(0 <= link < graph.pages for link in links)
    assert set(graph.children(page)) <= set(links)
    assert all(graph.parent(child) == page for child in graph.children(page))


@pytest.mark.parametrize(("pages", "branching"), [(1, 1), (500, 1), (500, 3), (2000, 20)])
def test_breadth_first_reaches_every_page(pages, branching):
    graph = SiteGraph(pages, seed=2, branching=branching, cross_links=2)
    seen, front = {0}, [0]
    while front:
        front = [link for page in front for link in graph.outlinks(page) if link not in seen]
        seen.update(front)
    assert len(seen) == pages


def test_titles_of_a_site_differ():
    graph = SiteGraph(50_000, seed=9)
    assert len({graph.title(page) for page in range(50_000)}) == 50_000


def test_low_pages_draw_most_links():
    graph = SiteGraph(1000, cross_links=10)
    targets = [link for page in range(1000) for link in graph.outlinks(page)]
    assert sum(link < 250 for link in targets) > 0.45 * len(targets)


def test_an_empty_graph_is_rejected():
    for wrong in ({"pages": 0}, {"pages": 5, "branching": 0}, {"pages": 5, "cross_links": -1}):
        with pytest.raises(ValueError, match="at least 1"):
            SiteGraph(**wrong)
