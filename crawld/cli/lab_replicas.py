"""`crawld lab replicas`, `prune`, `sampling`: detection, the gain of pruning, and its price."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from crawld.cli.lab_output import chosen_names
from crawld.cli.output import print_progress, with_exit_code


@with_exit_code
def replicas(
    *,
    web: Annotated[str, typer.Option(help="easy, standard, hard; comma-separated.")] = "standard",
    seeds: Annotated[int, typer.Option(min=1, help="Webs per kind, seeds 0, 1, …")] = 5,
    hosts: Annotated[int, typer.Option(min=1_000, help="Number of hosts.")] = 21_500,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Detect the replicas of simulated webs; print Markdown tables."""
    from crawld.lab.replica_tables import as_markdown, report
    from crawld.simweb.replica_parameters import WEBS, scale_web

    names = chosen_names(web, WEBS, "web")
    webs = [scale_web(WEBS[name], hosts) for name in names]
    tables = [report(web, range(seeds), print_progress) for web in webs]
    if json_out:
        print(json.dumps(tables, indent=1))
    else:
        print("\n\n".join(as_markdown(table) for table in tables))


@with_exit_code
def prune(
    *,
    hosts: Annotated[int, typer.Option(min=500, help="Number of hosts.")] = 6_000,
    replicated: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of replicated hosts.")
    ] = 0.3,
    budget: Annotated[float, typer.Option(help="Visits per page and day, over all pages.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Crawl a web of replicas with and without pruning, at the same budget."""
    from crawld.lab.prune import compare_pruning

    print_progress(f"a web of {hosts:,} hosts, {replicated:.0%} of them replicated")
    found = compare_pruning(
        hosts=hosts, replicated=replicated, visits_per_page_day=budget, seed=seed
    )
    if json_out:
        print(json.dumps(asdict(found), indent=1))
        return
    print(
        f"{found.hosts:,} hosts, {found.replicated:.0%} replicated; {found.pages:,} pages fetched\n"
        f"pruned      {found.pruned:,} hosts, {found.wrongly} of them wrongly\n"
        f"suspended   {found.resting:,} pages; {found.only_there:,} pages that only pruned hosts"
        f" have stay active\n"
        f"requests    {found.saved:.1%} saved at the same visit frequency of the other pages\n"
        f"freshness   {found.before:.3f} without, {found.after:.3f} with pruning at the same"
        f" budget ({found.kept_after:.3f} over the visited pages)\n"
        f"names       all still resolve to a page; {found.other_text:,} show a different text of"
        f" the canonical host\n"
        f"capacity    {found.lent.idle:,} idle replicas are fresh enough to fetch from;"
        f" {found.lent.helped:,} pages of their canonical hosts are visited"
        f" {found.lent.faster:.2f} times as often at the same delay of every host:"
        f" freshness {found.lent.alone:.3f} without, {found.lent.together:.3f} with them"
    )


@with_exit_code
def inlinks(
    *,
    seeds: Annotated[str, typer.Option(help="Seeds of the webs, comma-separated.")] = "0,1,2",
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show which attacks win, and which branches rest, by the inlinks that decide between names."""
    from crawld.lab.inlink_margin import as_markdown, inlink_margins

    found = inlink_margins([int(seed) for seed in seeds.split(",")], print_progress)
    print(json.dumps([asdict(one) for one in found], indent=1) if json_out else as_markdown(found))


@with_exit_code
def sampling(
    *,
    draws: Annotated[int, typer.Option(min=20, help="Random sections per line.")] = 200,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how soon samples see that a section differs, what they cost, and what none can see."""
    from crawld.lab import replica_bound
    from crawld.lab.replica_sampling import as_markdown, sampling_trade

    trade = sampling_trade(draws, seed, print_progress)
    sections = replica_bound.diverging_sections(replica_bound.GROUPS, seed)
    bound = [replica_bound.sampled_bound(sections, each) for each in replica_bound.PER_DAY]
    if json_out:
        found = {
            "trade": [asdict(one) for one in trade],
            "bound": [one._asdict() for one in bound],
        }
        print(json.dumps(found, indent=1))
    else:
        print(f"{as_markdown(trade)}\n\n{replica_bound.as_markdown(bound)}")
