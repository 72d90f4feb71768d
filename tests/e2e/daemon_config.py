"""Configs, sites and queries shared by the end-to-end tests of the daemon."""

from contextlib import closing

from crawld.simweb.demo import make_sites
from crawld.store.engine.connection import open_connection

HOSTS = ("a.test", "b.test", "c.test")


def write_config(crawld, *sites, hosts=HOSTS, **tables):
    """Write a config with all hosts on 127.0.0.1; return its path."""
    everything = {
        "daemon": {"db": str(crawld.db), "contact": "test@example.org"},
        "dns": {"hosts": {host: ["127.0.0.1"] for host in hosts}},
        "politeness": {"host_delay_s": 0.05, "address_delay_s": 0.02},
        "store": {"min_free_bytes": 0},
    }
    for name, table in tables.items():
        everything[name] = {**everything.get(name, {}), **table}
    lines = []
    for name, table in everything.items():
        lines += [f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    for site in sites:
        lines += ["[[site]]", *(f"{key} = {_toml(value)}" for key, value in site.items())]
    path = crawld.folder / "crawld.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def start_daemon(crawld, *sites, **more):
    """Write a config and start a daemon with it."""
    crawld.start("run", "-c", write_config(crawld, *sites, **more))


def _toml(value):
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"'
        case list() | tuple():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case dict():
            return (
                "{ " + ", ".join(f'"{key}" = {_toml(each)}' for key, each in value.items()) + " }"
            )
        case _:
            return repr(value)


def site(*seeds, name="web", **more):
    """Return a [[site]] table for hosts on this machine, without requisites."""
    return {"name": name, "seeds": seeds, "allow_private": True, "requisites": False, **more}


NOT_ARTICLES = (
    "regex:/wiki/(Special|Category|Template|Entries|User|Help)(_talk)?:",
    "regex:[?]",
)


def wiki_site(*seeds, **more):
    """Return a [[site]] table for the articles of a wiki on this machine."""
    fixed = {"name": "wiki", "include": ["prefix:/wiki/"], "exclude": NOT_ARTICLES}
    return {**fixed, "seeds": seeds, "allow_private": True, **more}


def urls_of(web, *, pages, hosts=HOSTS, seed=1):
    """Return the URLs of all pages that `simweb --host ... --pages ...` serves."""
    sites = make_sites(list(hosts), pages=pages, seed=seed)
    return {
        web.url(each.graph.path(number), host)
        for each, host in zip(sites, hosts, strict=True)
        for number in range(pages)
    }


def query_rows(crawld, sql, *bindings):
    """Query the database, with or without a running daemon."""
    with closing(open_connection(crawld.db)) as connection:
        return connection.execute(sql, bindings).fetchall()


def crawl_requests(mediawiki):
    """Return the ledger rows of crawld's requests to a wiki."""
    return [row for row in mediawiki.ledger().rows() if row.user_agent.startswith("crawld")]


def early_requests(web, *, host_delay_s=0.05, address_delay_s=0.02):
    """Return every request that came too early, according to the server."""
    ledger = web.ledger()
    return [
        *ledger.violations(delay_s=host_delay_s),
        *ledger.violations(delay_s=address_delay_s, by="address"),
    ]
