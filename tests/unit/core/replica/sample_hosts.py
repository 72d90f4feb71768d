"""Makes host sets for the tests of the replica search."""

import numpy as np

from crawld.core.replica.hosts import Hosts


def hosts_of(names, pages, *, addresses=None, links=(), **more):
    """Return hosts with pages (host, path, signature) and links (host, target)."""
    host, path, signature = (np.array(column) for column in zip(*pages, strict=True))
    link_host, link = (np.array(c) for c in zip(*links, strict=True)) if links else ([], [])
    return Hosts(
        tuple(names),
        tuple(addresses or [""] * len(names)),
        host.astype(np.int64),
        path.astype(np.uint64),
        signature.astype(np.uint64),
        np.array(link_host, dtype=np.int64),
        np.array(link, dtype=np.uint64),
        **more,
    )
