"""Look-alikes with texts in common: versions, languages, sister sites, shops, forks, manuals.

No two of these hosts are copies: each has pages, or texts at equal paths, that the other has not.
"""

from __future__ import annotations

from dataclasses import replace

from crawld.simweb.lookalike.copies import usual_site
from crawld.simweb.lookalike.draft import CrawlFacts, HostFamily, in_section, only_root
from crawld.simweb.lookalike.host import PLAIN, Decoration
from crawld.simweb.lookalike.pages import SitePages

_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl")
_DEPARTMENTS = ("law", "arts", "physics", "history", "music", "biology", "maths", "library")


def versions(family: HostFamily) -> None:
    """Add versions of a documentation: most pages changed between any two, some in none."""
    domain, owner, count = family.domain(), family.new_owner(), family.count(2, 5)
    shown = family.site({"docs": family.count(30, 60)}, numbered=family.rng.random() < 0.3)
    equal = float(family.rng.uniform(0.2, 0.88))
    style = family.rng.random()
    facts = CrawlFacts(address=family.address())
    for number in range(1, count + 1):
        name = f"v{number}.docs.{domain}" if style < 0.5 else f"docs-{number}.{domain}"
        family.host(family.claim(name), shown, owner=owner, facts=facts)
        shown = family.own(shown, family.chosen(shown, 1 - equal, root=True))


def languages(family: HostFamily) -> None:
    """Add language editions: tables of numbers are equal, and pages nobody translated yet."""
    domain, owner = family.domain(), family.new_owner()
    site = family.site({"tables": family.count(10, 25), "wiki": family.count(15, 40)})
    facts = CrawlFacts(address=family.address())
    untranslated = float(family.rng.choice((0.0, 0.2, 0.6)))
    for code in _LANGUAGES[: family.count(2, 5)]:
        own = ~in_section(site, ("tables",)) & ~family.chosen(site, untranslated) | only_root(site)
        shown = family.own(site, own)
        family.host(family.claim(f"{code}.{domain}"), shown, owner=owner, facts=facts)


def themes(family: HostFamily) -> None:
    """Add two sites with the texts of a theme's demonstration, or one site for two screens."""
    domain, owner = family.domain(), family.new_owner()
    site = usual_site(family)
    if family.rng.random() < 0.5:
        names = [domain, f"m.{domain}"]
        shown = [site, replace(site, chrome=int(family.texts(1)[0]))]
    else:
        names = [f"demo{at}.{domain}" for at in range(1, 4)]
        shown = [family.own(site, family.chosen(site, 0.35, root=True)) for _ in names]
    for name, pages in zip(names, shown, strict=True):
        claimed = name if name == domain else family.claim(name)
        family.host(claimed, pages, owner=owner)


def sister_sites(family: HostFamily) -> None:
    """Add the sites of one company: some documents in common, all else their own."""
    domain, owner = family.domain(), family.new_owner()
    site = family.site(
        {"press": family.count(5, 20), "products": family.count(15, 30)}, numbered=True
    )
    facts = CrawlFacts(address=family.address())
    for _ in range(family.count(3, 5)):
        own = ~in_section(site, ("press",))
        name = family.claim(f"{family.names.word()}.{domain}")
        family.host(name, family.own(site, own), owner=owner, facts=facts)


def shops(family: HostFamily) -> None:
    """Add white-label shops: one catalogue, some prices and pages of their own, or own menus."""
    domain, own_menu = family.domain(), family.rng.random() < 0.4
    site = family.site({"shop": family.count(25, 45), "info": family.count(3, 6)}, numbered=True)
    facts = CrawlFacts(address=family.address())
    for _ in range(family.count(3, 6)):
        own = in_section(site, ("info",)) | only_root(site)
        priced = family.edited(site, family.chosen(site, float(family.rng.uniform(0.1, 0.5))))
        shown = family.own(priced, own)
        if own_menu:
            shown = replace(shown, chrome=int(family.texts(1)[0]))
        below = family.rng.random() < 0.5
        name = family.claim(f"{family.names.word()}.{domain}") if below else family.domain()
        family.host(name, shown, owner=family.new_owner(), facts=facts)


def wiki_farms(family: HostFamily) -> None:
    """Add wikis of one farm: the pages of help are equal, the articles are not."""
    domain = family.domain()
    site = family.site({"help": family.count(10, 25), "policy": family.count(3, 8)})
    facts = CrawlFacts(address=family.address())
    for _ in range(family.count(8, 16)):
        articles = family.site({"wiki": family.count(5, 40)}, numbered=True)
        shown = family.own(site, only_root(site)).joined(articles)
        name = family.claim(f"{family.names.word()}.{domain}")
        family.host(name, shown, owner=family.new_owner(), facts=facts)


def forks(family: HostFamily) -> None:
    """Add a site and its fork: what was written before is equal, what came later is not."""
    site, domain = usual_site(family), family.domain()
    old = float(family.rng.uniform(0.5, 0.9))
    below = family.rng.random() < 0.5
    changed = family.own(site, family.chosen(site, 1 - old, root=True))
    fork = replace(changed, frozen_day=float(family.rng.uniform(-30, 30)))
    fork = fork.joined(family.site({"own": family.count(3, 12)}))
    owner = family.new_owner()
    facts = CrawlFacts(linked_from=family.count(5, 30))
    family.host(family.claim(f"app.{domain}"), site, owner=owner, facts=facts)
    name = family.claim(f"old.{domain}") if below else family.domain()
    family.host(name, fork, owner=owner if below else family.new_owner())


def syndication(family: HostFamily) -> None:
    """Add newspapers with the articles of one agency, and their own."""
    agency = family.site({"world": family.count(20, 40)}, numbered=False)
    for _ in range(family.count(5, 10)):
        local = family.site({"local": family.count(6, 20)}, numbered=True)
        taken = family.copied(
            family.own(agency, only_root(agency)), kept=float(family.rng.uniform(0.5, 1))
        )
        family.host(
            family.domain(),
            taken.joined(local),
            owner=family.new_owner(),
            decoration=family.decoration(0.3),
        )


def franchises(family: HostFamily) -> None:
    """Add the shops of a brand: the menu is equal, each has its own town."""
    domain, owner = family.domain(), family.new_owner()
    site = family.site({"menu": family.count(10, 25), "town": family.count(5, 20)}, numbered=True)
    below = family.rng.random() < 0.6
    label = domain.partition(".")[0]
    for _ in range(family.count(3, 7)):
        own = in_section(site, ("town",)) | only_root(site)
        word = family.names.word()
        other = f"{label}-{word}.{family.names.top_level()}"
        name = family.claim(f"{word}.{domain}" if below else other)
        shown = family.own(site, own)
        family.host(name, shown, owner=owner if below else family.new_owner())


def calendars(family: HostFamily) -> None:
    """Add calendars of one program: empty months are equal."""
    domain = family.domain()
    months = [f"/calendar/{2015 + at // 12}/{at % 12 + 1:02}" for at in range(family.count(36, 60))]
    site = SitePages.of(["/", *months], family.texts(1 + len(months)))
    empty = float(family.rng.uniform(0.4, 0.75))
    for _ in range(family.count(2, 3)):
        shown = family.own(site, family.chosen(site, 1 - empty, root=True))
        name = family.claim(f"{family.names.word()}.{domain}")
        family.host(name, shown, owner=family.new_owner())


def api_docs(family: HostFamily) -> None:
    """Add references made by one tool: its help and the standard library's pages are equal."""
    library = family.site({"java": family.count(20, 35), "help": family.count(2, 4)})
    tool = CrawlFacts(address=family.address())
    for _ in range(family.count(5, 10)):
        own = family.site({"com": family.count(8, 30)}, numbered=True)
        shown = family.own(library, only_root(library)).joined(own)
        name = family.claim(f"docs.{family.domain()}")
        facts = tool if family.rng.random() < 0.5 else CrawlFacts()
        family.host(name, shown, owner=family.new_owner(), facts=facts)


def manuals(family: HostFamily) -> None:
    """Add many hosts that all serve the manual of their web server, word for word."""
    manual = family.site({"manual": family.count(25, 45)}, numbered=False)
    for _ in range(family.count(12, 25)):
        own = family.site({"about": family.count(3, 12)}, numbered=True)
        family.host(
            family.domain(),
            family.own(manual, only_root(manual)).joined(own),
            owner=family.new_owner(),
            decoration=family.decoration(0.2),
        )


def departments(family: HostFamily) -> None:
    """Add departments of a university: one manual in common, few pages of their own.

    In a chain each shares another part with the next, so that the first and the last share nothing.
    """
    domain, owner = family.domain(), family.new_owner()
    manual = family.site({"handbook": family.count(35, 45), "news": family.count(8, 12)})
    chained = family.rng.random() < 0.5
    shown, labels = manual, _DEPARTMENTS[: family.count(2, len(_DEPARTMENTS))]
    facts = CrawlFacts(address=family.address())
    for label in labels:
        own = in_section(shown, ("news",)) | only_root(shown)
        if chained:
            own |= family.chosen(shown, 0.45)
            shown = family.own(shown, own)
            family.host(family.claim(f"{label}.{domain}"), shown, owner=owner, facts=facts)
        else:
            name = family.claim(f"{label}.{domain}")
            family.host(name, family.own(shown, own), owner=owner, facts=facts)


def platforms(family: HostFamily) -> None:
    """Add blogs of one platform: its pages of terms and help are equal; owners differ."""
    domain = family.domain()
    terms = family.site({"terms": family.count(4, 8)}, numbered=True)
    facts = CrawlFacts(address=family.address())
    for _ in range(family.count(10, 25)):
        posts = family.site({"post": family.count(2, 30)}, numbered=True)
        name = family.claim(f"{family.names.word()}.{domain}")
        pages = family.own(terms, only_root(terms)).joined(posts)
        family.host(name, pages, owner=family.new_owner(), facts=facts)


def plain(family: HostFamily) -> None:
    """Add a site that has nothing in common with any other but some paths."""
    decoration = Decoration(date=True) if family.rng.random() < 0.2 else PLAIN
    family.host(
        family.domain(), usual_site(family), owner=family.new_owner(), decoration=decoration
    )
