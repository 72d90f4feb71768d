"""A site and a URL, as the rooms of the daemon are given them."""

from crawld.config.model import Config
from crawld.core.url import split_url, url_hash
from crawld.daemon.frontier.site import activate
from crawld.store.frontier.frontier import Discovery


def make_site(site_id=1, hosts=(), seeds=(), **more):
    """Return an active site, whose hosts are those of its seeds and `hosts`."""
    site = {"name": "s", "seeds": list(seeds), "hosts": list(hosts), **more}
    config = Config.model_validate({"site": [site]})
    of_seeds = {split_url(seed).host for seed in seeds}
    return activate(config, config.sites[0], of_seeds, site_id=site_id, paused=False, now=0.0)


def make_discovery(path, host="a.test", **more):
    """Return a URL as admission hands it to the frontier."""
    url = f"http://{host}{path}"
    fields = {"site_id": 1, "host": host, "origin": f"http://{host}", "at": 1e9}
    return Discovery(url=url, url_hash=url_hash(url), **{**fields, **more})
