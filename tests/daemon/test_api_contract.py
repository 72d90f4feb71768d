"""Every route of the control socket with absurd requests: no 500, only declared statuses."""

import itertools

import pytest

from tests.daemon.control_client import control_client
from tests.daemon.harness import make_site, until

ABSURD_TEXTS = (
    *(
        "",
        " ",
        "9" * 25,
        "-1",
        "0",
        "1e400",
        "nan",
        "a" * 10_000,
        "\0",
        "é\u202e\x1b[2J",
        "%",
        "..",
        "'",
    ),
    *(
        "http://",
        "https://u:pw@a.test/",
        "http://a.test/none",
        "inf",
        "1" * 400,
        "9" * 400 + " days",
    ),
)
ABSURD_JSON = (
    *(
        "null",
        "[]",
        '""',
        "1",
        "NaN",
        "-Infinity",
        "1e999",
        '"\\ud800"',
        "9" * 5_000,
        "9" * 25,
        "true",
        '{"a": 1}',
    ),
    '["http://a.test/", 1, "\\ud800", "http://u:pw@a.test/", "\\u0000"]',
    '"' + "a" * 100_000 + '"',
)
ABSURD_BODIES = (
    *(b"", b"{", b"[]", b"null", b"\xff", b"{}" * 9, b'{"\\ud800": 1}', b'{"a": NaN}'),
    b"[" * 100_000,
    b"9" * 100_000,
)
ENDS_THE_DAEMON = "/shutdown"


@pytest.fixture
async def client(serve, daemon):
    """A client of a daemon that has visited its site."""
    web = await serve(make_site(pages=3))
    running = await daemon(web.url())
    await until(lambda: running.crawl.visitor.counts)
    async with control_client(running) as opened:
        opened.timeout = 60.0
        opened.seed = web.url()
        yield opened


def resolve(described, schema):
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def requests_of(described, path, method, operation, seed):
    """Yield absurd requests for an operation: paths, queries and bodies."""
    parameters = operation.get("parameters", ())
    valid = {each["name"]: seed for each in parameters if each["name"] == "url"}
    queries = [each["name"] for each in parameters if each["in"] == "query"]
    target = path.replace("{host}", "a.test").replace("{name}", "audit")
    if "requestBody" not in operation:
        yield target, valid, None
    for name, text in itertools.product(queries, ABSURD_TEXTS):
        yield target, {**valid, name: text}, None
    if "{" in path:
        for text in ("%00", "%FF", "a" * 5_000, "%2e%2e", "9" * 25, "%1b"):
            yield path.replace("{host}", text).replace("{name}", text), {}, None
    if "requestBody" in operation:
        form = resolve(described, operation["requestBody"]["content"]["application/json"]["schema"])
        for body in ABSURD_BODIES:
            yield target, {}, body
        for name, value in itertools.product(form.get("properties", {}), ABSURD_JSON):
            # The other fields are valid, so that the absurd one gets as far as it can.
            fields = {"urls": f'["{seed}"]', "url": f'"{seed}"', "site": '"s"', "host": '"a.test"'}
            known = form["properties"]
            given = {key: text for key, text in fields.items() if key in known} | {name: value}
            text = ",".join(f'"{key}": {given[key]}' for key in given)
            yield target, {}, b"{" + text.encode() + b"}"


async def test_no_request_is_a_bug_and_every_status_is_declared(client):
    described = (await client.get("/openapi.json")).json()
    sent, statuses = 0, set()
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            for target, query, body in requests_of(described, path, method, operation, client.seed):
                if path == ENDS_THE_DAEMON and body not in ABSURD_BODIES[1:]:
                    continue
                headers = {"content-type": "application/json"} if body is not None else {}
                response = await client.request(
                    method, target, params=query, content=body, headers=headers
                )
                what = (method, target[:80], query, (body or b"")[:80], response.text[:500])
                assert response.status_code < 500, what
                assert str(response.status_code) in operation["responses"], what
                if response.status_code >= 400:
                    assert {"error", "hint"} <= response.json().keys(), what
                    if body or "pw" in query.get("url", ""):
                        assert "pw" not in response.text, what
                sent += 1
                statuses.add(response.status_code)
    assert sent > 500
    assert {200, 404, 409, 422} <= statuses


async def test_the_values_of_an_invalid_request_are_not_repeated(client):
    form = {"urls": ["http://a.test/"], "secret": "s3cret", "max_depth": "s3cret"}
    response = await client.post("/add", json=form)
    assert response.status_code == 422
    assert {tuple(each["loc"]) for each in response.json()["detail"]} == {
        ("body", "secret"),
        ("body", "max_depth"),
    }
    assert "s3cret" not in response.text


async def test_retention_without_any_requisite(serve, paused_daemon):
    web = await serve(make_site(pages=2))
    running = await paused_daemon(web.url())
    await until(lambda: running.site_registry.seeded)
    await running.database.write(
        lambda connection: connection.execute(
            "INSERT OR REPLACE INTO requisite_use (page_id, requisites)"
            " SELECT page_id, x'' FROM page"
        ).fetchall()
    )
    async with control_client(running) as client:
        response = await client.get("/retention")
    assert response.status_code == 200
    assert {each["kind"] for each in response.json()[0]["holdings"]} >= {"needless"}
