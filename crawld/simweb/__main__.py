"""`python -m crawld.simweb`: a simulated web in its own process.

Prints a line `PORT n` when it accepts connections and serves until it is terminated. For tests that
kill the crawler and benchmarks that must not share a core with it; they read the ledger file.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import time
from collections.abc import Iterable

import trio

from crawld.errors import OperatorError
from crawld.simweb.change_process import SiteChangeRates
from crawld.simweb.demo import loopback_addresses, make_demo_site, make_sites
from crawld.simweb.fault import Fault, parse_fault, sometimes
from crawld.simweb.ledger import Ledger
from crawld.simweb.render import ALL_NOISE, PageStyle
from crawld.simweb.replica_host import replica_hosts
from crawld.simweb.replica_parameters import STANDARD, scale_web
from crawld.simweb.replica_web import make_web
from crawld.simweb.server import HostedSite, SimWeb
from crawld.simweb.site import SimSite


def main(arguments: list[str] | None = None) -> None:
    """Serve the sites that the command line describes."""
    options = _options().parse_args(arguments)
    # Ten thousand hosts keep ten thousand connections open.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        faults = _faults(options)
    except OperatorError as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    ledger = Ledger(options.ledger)
    web = SimWeb(_all_sites(options, faults), ledger=ledger, port=options.port, any_loopback=True)
    trio.run(_serve, web)
    ledger.close()


async def _serve(web: SimWeb) -> None:
    async with trio.open_nursery() as nursery:
        listening = await nursery.start(web.serve)
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            print(f"PORT {listening.port}", flush=True)
            async for _ in signals:
                nursery.cancel_scope.cancel()


def _all_sites(options: argparse.Namespace, faults: dict[str, Fault]) -> Iterable[HostedSite]:
    if options.replica_hosts:
        parameters = scale_web(STANDARD, options.replica_hosts, options.replicated, options.pages)
        return replica_hosts(make_web(parameters, options.seed))
    sites = _sites(options)
    for site in sites:
        site.faults = faults
    return sites


def _sites(options: argparse.Namespace) -> list[SimSite]:
    hosts = options.host or ["127.0.0.1"]
    if options.addresses:
        hosts = loopback_addresses(options.addresses)
    if options.demo:
        return [make_demo_site(options.seed, time.time, hosts=tuple(hosts))]
    rates = SiteChangeRates(*options.change_interval_s) if options.change_interval_s else None
    return make_sites(
        hosts,
        pages=options.pages,
        seed=options.seed,
        style=PageStyle(options.page_bytes, noise=ALL_NOISE if options.noise else frozenset()),
        change_rates=rates,
        start_at=time.time(),
    )


def _faults(options: argparse.Namespace) -> dict[str, Fault]:
    faults = {}
    for text in options.fault:
        prefix, _, name = text.partition("=")
        faults[prefix] = sometimes(options.fault_share, parse_fault(name), seed=options.seed)
    return faults


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m crawld.simweb", description=__doc__)
    parser.add_argument("--demo", action="store_true", help="serve the site of `crawld demo`")
    parser.add_argument("--host", action="append", help="host name; one site each, repeatable")
    parser.add_argument("--addresses", type=int, help="number of sites, each on its own address")
    parser.add_argument(
        "--replica-hosts", type=int, help="serve a web of this many hosts, some of them copies"
    )
    parser.add_argument("--replicated", type=float, default=0.3, help="share in replica groups")
    parser.add_argument("--pages", type=int, default=60, help="pages per site, or their median")
    parser.add_argument("--page-bytes", type=int, default=3000)
    parser.add_argument("--change-interval-s", type=float, nargs=2, metavar=("MIN", "MAX"))
    parser.add_argument("--noise", action="store_true", help="every response differs")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="PREFIX=NAME[:ARGUMENT]",
        help="fault under a path prefix, e.g. /wiki/=busy:60; repeatable",
    )
    parser.add_argument("--fault-share", type=float, default=1.0, help="share of requests affected")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ledger", help="append a JSON line per request to this file")
    return parser


if __name__ == "__main__":
    main()
