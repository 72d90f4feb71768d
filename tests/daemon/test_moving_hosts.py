"""A host whose name leads to another address than when its turn was planned."""

from tests.daemon.harness import until
from tests.daemon.plugins.page_site import PageSite, page

OLD = "127.0.0.9"


async def test_a_request_comes_in_the_turn_of_the_address_that_it_goes_to(serve, daemon):
    """The old address may be free while another host is asked at the new one."""
    hosts, addresses = {}, []

    def answer(request, number):
        if hosts:
            slot = hosts["a.test"].slot
            addresses.append(slot.address)
            slot.address = OLD  # what was found before it moved
        return page()

    web = await serve(PageSite({"/": answer}))
    schedule, politeness = {"min_revisit_s": 0.0}, {"host_delay_s": 0.005}
    running = await daemon(web.url(), schedule=schedule, politeness=politeness)
    await until(lambda: "a.test" in running.crawl.state.hosts, what="the host")
    hosts.update(running.crawl.state.hosts)
    await until(lambda: len(addresses) >= 4, what="visits")
    assert set(addresses) == {"127.0.0.1"}
