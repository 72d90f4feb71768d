"""Adding URLs, and resuming: what the answer tells besides that it is done."""

from tests.daemon.control_client import get, post
from tests.daemon.harness import make_site


async def added(running, *urls, **more):
    response = await post(running, "/add", urls=list(urls), host_delay_s=9.0, **more)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_new_site_and_hosts_that_cannot_be_fetched_are_told(serve, daemon):
    web = await serve(make_site(pages=2))
    running = await daemon(web.url())
    known = await added(running, web.url("/x"), site=running.config.sites[0].name)
    assert (known["new_site"], known["warnings"]) == (False, [])
    fenced = await added(running, "http://10.1.2.3/", site="fenced")
    assert fenced["new_site"] is True
    [warning] = fenced["warnings"]
    assert warning.startswith("10.1.2.3: 10.1.2.3 is not a public address")
    assert "--allow-private" in warning
    allowed = await added(running, "http://10.1.2.4/", site="allowed", allow_private=True)
    assert allowed["warnings"] == []
    unknown = await added(running, "http://no.such.localhost.test/", site="unknown")
    [warning] = unknown["warnings"]
    assert warning.startswith("no.such.localhost.test: ")
    assert "tried again" in warning


async def test_urls_of_a_paused_site_are_told_to_wait(serve, daemon):
    web = await serve(make_site(pages=2))
    running = await daemon(web.url())
    name = running.config.sites[0].name
    await post(running, "/pause", site=name)
    [warning] = (await added(running, web.url("/x"), site=name))["warnings"]
    assert warning == f"site {name} is paused; to resume: crawlctl resume --site {name}"


async def test_a_resume_tells_what_stays_paused(serve, daemon):
    web = await serve(make_site(pages=2))
    running = await daemon(web.url())
    name = running.config.sites[0].name
    assert (await post(running, "/resume")).json() == {"done": "everything resumed"}
    await post(running, "/pause")
    await post(running, "/pause", site=name)
    await post(running, "/pause", host="a.test")
    running.crawl.schedule.pause("disk_room")
    done = (await post(running, "/resume")).json()["done"]
    assert done == (
        "everything resumed; still paused: everything (disk nearly full),"
        f" site {name} (crawlctl resume --site {name}), host a.test (crawlctl resume --host a.test)"
    )
    running.crawl.schedule.resume("disk_room")
    done = (await post(running, "/resume", site=name)).json()["done"]
    assert done == (
        f"site {name} resumed; still paused: host a.test (crawlctl resume --host a.test)"
    )
    assert (await get(running, "/status")).json()["pauses"] == []
