"""Makes active sites and discovered URLs for unit tests of the daemon."""

from crawld.config.model import Config
from crawld.core.url import split_url, url_hash
from crawld.daemon.frontier.site import activate
from crawld.store.frontier.frontier import Discovery


def make_site(site_id=1, hosts=(), seeds=(), **more):
    """Return an active site; its hosts are those of `seeds`, and `hosts`."""
    site = {"name": "s", "seeds": list(seeds), "hosts": list(hosts), **more}
    config = Config.model_validate({"site": [site]})
    seed_hosts, seed_origins = (
        {getattr(split_url(seed), part) for seed in seeds} for part in ("host", "origin")
    )
    return activate(
        config, config.sites[0], seed_hosts, seed_origins, site_id=site_id, paused=False, now=0.0
    )


def make_discovery(path, host="a.test", **more):
    """Return an admitted URL of site 1, found at Unix time 1e9."""
    url = f"http://{host}{path}"
    fields = {"site_id": 1, "host": host, "origin": f"http://{host}", "at": 1e9}
    return Discovery(url=url, url_hash=url_hash(url), **{**fields, **more})
