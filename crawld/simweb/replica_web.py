"""Generate a web of replicas with known truth: which hosts are copies, and why.

A site has pages in levels, texts, its own paths, and paths that its CMS gives to every site. A host
shows a site fully or partly, in its current or an older state, with dynamic blocks, under names and
addresses typical for its kind. A crawl fetches a part of each host, breadth first, in its own
order. The web also contains look-alikes: language versions, communities with equal texts, blogs
under one name and address, parked domains, families of sites, hosts with the same error on every
path.

Source: the five causes are those of Carvalho 2014; the misleading look-alikes come from there and
from experiments. A web is a pure function of its parameters (`replica_parameters`) and its seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crawld.core.replica.hosts import Hosts, Ids, Keys, pair_keys, path_key
from crawld.simweb.host_names import HostNames
from crawld.simweb.replica_parameters import Cause, CopyParameters, WebParameters

LANGUAGES = ("de", "fr", "it", "es", "pt", "en")
CITIES = ("berlin", "paris", "roma", "lyon", "porto", "recife", "leeds", "turin")

_LEVEL_ENDS = np.array([1, 13, 103, 10**9])
"""Number of pages up to each level of a site: the root, the pages it links to, and so on."""

_CMS_COUNT = 14
_CMS_PAGES = 150
_CMS_NUMBERS = 4_000
_COMMON_PAGES = 250
_PROVIDERS = 250
_ERRORS = 15

_FAILED = 0.02
"""Share of the fetches that return nothing to compare."""

_PATH, _CMS, _NUMBER, _COMMON, _TEXT, _SLUG, _ERROR, _LOCAL, _OLD, _MOVED, _LINK, _FAILURE = range(
    12
)


def hash_keys(*keys: int | Ids | Keys) -> Keys:
    """Return a 64-bit hash of the keys, element by element (finalizer of SplitMix64)."""
    state = np.uint64(0x9E3779B97F4A7C15)
    mixed = np.zeros(1, dtype=np.uint64)
    for key in keys:
        word = np.asarray(key).astype(np.uint64)
        mixed = (mixed ^ word) + state
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed


@dataclass(frozen=True, slots=True)
class SiteContent:
    """The pages of a site, shown by one or more hosts.

    Attributes:
        number: identity of the site.
        path: path key of each page; the root is first.
        text: text key of each page; 0 if it has none.
        dynamic: whether each page's text differs at every fetch.
        links: keys of the host names it links to.
    """

    number: int
    path: Keys
    text: Keys
    dynamic: NDArray[np.bool_]
    links: Keys


@dataclass(frozen=True, slots=True)
class UnfetchedPages:
    """Pages that a crawl has seen as links and not fetched yet.

    Attributes:
        host: host of each page.
        path: path key of each page.
        signature: signature it will have; 0 if there is nothing to compare.
    """

    host: Ids
    path: Keys
    signature: Keys


@dataclass(frozen=True, slots=True)
class ReplicaWeb:
    """A web as a crawl saw it, and the truth about it.

    Attributes:
        parameters: what it was generated from.
        hosts: what the crawler knows.
        unfetched: the remaining pages of each host.
        group: replica group of each host; -1 for none.
        cause: cause of each group.
    """

    parameters: WebParameters
    hosts: Hosts
    unfetched: UnfetchedPages
    group: Ids
    cause: tuple[Cause, ...]

    def true_pairs(self) -> tuple[Ids, tuple[Cause, ...]]:
        """Return the sorted keys of all pairs of replicas, and the cause of each."""
        keys: list[int] = []
        causes: list[Cause] = []
        order = np.argsort(self.group, kind="stable")
        order = order[self.group[order] >= 0]
        ends = np.flatnonzero(np.diff(self.group[order])) + 1
        for members in np.split(order, ends) if len(order) else ():
            one, other = np.triu_indices(len(members), 1)
            keys += pair_keys(members[one], members[other]).tolist()
            causes += [self.cause[int(self.group[members[0]])]] * len(one)
        order = np.argsort(keys)
        return np.array(keys, dtype=np.int64)[order], tuple(causes[at] for at in order)


def make_web(parameters: WebParameters, seed: int) -> ReplicaWeb:
    """Generate a web; takes about five seconds on one core."""
    return _WebBuilder(parameters, seed).web()


class _WebBuilder:
    def __init__(self, parameters: WebParameters, seed: int) -> None:
        self.parameters = parameters
        self.rng = np.random.default_rng([seed, len(parameters.name)])
        self.name_source = HostNames(self.rng)
        self.site_count = 0
        self.names: list[str] = []
        self.address: list[int] = []
        self.pages: list[tuple[Keys, Keys]] = []
        self.rest: list[tuple[Keys, Keys]] = []
        self.links: list[Keys] = []
        self.group: list[int] = []
        self.cause: list[Cause] = []
        self.certificates: list[frozenset[str]] = []
        self.redirects: dict[tuple[int, int], int] = {}
        self.canonicals: dict[tuple[int, int], int] = {}
        # Each provider has one network of 256 addresses.
        networks = self.rng.integers(1 << 16, 223 << 16, size=_PROVIDERS)
        self.providers = [int(network) << 8 for network in networks]

    # --- sites ---------------------------------------------------------------------------------

    def site(self, *, cms: int | None = None, pages: int | None = None) -> SiteContent:
        """Return a new site with its own texts."""
        rng, parameters = self.rng, self.parameters
        self.site_count += 1
        number = self.site_count
        count = pages or int(np.clip(rng.lognormal(np.log(45), 1.0), 1, 1500))
        index = np.arange(count)
        path = hash_keys(_PATH, number, index)
        if cms is None:
            cms = int(_CMS_COUNT * rng.random() ** 1.5)
        common = rng.random(count) < rng.beta(2, 2 / parameters.common_paths - 2)
        kind = rng.random(count)
        skew = rng.random(count) ** 2
        path = np.where(common, hash_keys(_CMS, cms, (skew * _CMS_PAGES).astype(int)), path)
        numbered = common & (kind < 0.5)
        path = np.where(numbered, hash_keys(_NUMBER, cms, (skew * _CMS_NUMBERS).astype(int)), path)
        general = common & (kind > 0.8)
        path = np.where(general, hash_keys(_COMMON, (skew * _COMMON_PAGES).astype(int)), path)
        path[0] = path_key("/")
        first = np.sort(np.unique(path, return_index=True)[1])
        dynamic_share = rng.beta(0.4, 0.4 / parameters.dynamic - 0.4)
        return SiteContent(
            number,
            path[first],
            hash_keys(_TEXT, number, first),
            rng.random(len(first)) < dynamic_share,
            hash_keys(_LINK, (rng.random(int(rng.integers(2, 25))) ** 3 * 20_000).astype(int)),
        )

    def copy(self, site: SiteContent, parameters: CopyParameters) -> SiteContent:
        """Return the pages of a site as a copy of it shows them."""
        rng = self.rng
        count = len(site.path)
        path, text = site.path.copy(), site.text.copy()
        copy_number = int(rng.integers(1 << 40))
        stale = rng.random(count) < self._share(parameters.stale)
        text = np.where(stale, hash_keys(_OLD, text, copy_number), text)
        modified = rng.random(count) < self._share(parameters.modified)
        text = np.where(modified, hash_keys(_LOCAL, text, copy_number), text)
        renamed = rng.random(count) < self._share(parameters.renamed)
        renamed[0] = False
        path = np.where(renamed, hash_keys(_MOVED, path, copy_number), path)
        kept = rng.random(count) < self._share(parameters.kept)
        kept[0] = True
        extra = np.arange(round(self._share(parameters.extra) * count))
        own_links = hash_keys(_LINK, (rng.random(3) ** 3 * 20_000).astype(int))
        links = site.links[rng.random(len(site.links)) < 0.85]
        return SiteContent(
            site.number,
            np.concatenate((path[kept], hash_keys(_PATH, copy_number, extra))),
            np.concatenate((text[kept], hash_keys(_TEXT, copy_number, extra))),
            np.concatenate((site.dynamic[kept], np.zeros(len(extra), dtype=bool))),
            np.concatenate((links, own_links)),
        )

    def _share(self, mean: float) -> float:
        """Draw a share around a mean from a Beta distribution of weight 5."""
        if mean in (0.0, 1.0):
            return mean
        return float(self.rng.beta(5 * mean, 5 * (1 - mean)))

    # --- hosts ---------------------------------------------------------------------------------

    def own_address(self) -> int:
        """Return an exclusive address, or one that a hosting provider shares among many hosts."""
        rng = self.rng
        if rng.random() < 0.4:
            return int(rng.integers(1 << 24, 223 << 24))
        provider = self.providers[int(_PROVIDERS * rng.random() ** 2)]
        return provider + int(40 * rng.random() ** 2)

    def host(self, name: str, address: int, site: SiteContent, group: int = -1) -> int:
        """Add a host, crawl it, and return its index."""
        rng, parameters = self.rng, self.parameters
        index = len(self.names)
        level = np.searchsorted(_LEVEL_ENDS, np.arange(len(site.path)), side="right")
        order = np.argsort(
            level + parameters.crawl_disorder * rng.random(len(level)), kind="stable"
        )
        end = max(1, int(rng.lognormal(np.log(parameters.crawl_median), parameters.crawl_sigma)))
        fetched, rest = order[:end], order[end:]
        shown = np.where(site.dynamic, hash_keys(_LOCAL, site.text, index, 7), site.text)
        shown = np.where(site.text == 0, np.uint64(0), shown)
        # A failed fetch is empty. Unfetched pages use no random numbers, so the crawl does not
        # depend on them.
        text = np.where(rng.random(len(fetched)) < _FAILED, np.uint64(0), shown[fetched])
        fails = hash_keys(_FAILURE, index, site.path[rest]) % np.uint64(1 / _FAILED) == 0
        self.rest.append((site.path[rest], np.where(fails, np.uint64(0), shown[rest])))
        self.names.append(name)
        self.address.append(address)
        self.pages.append((site.path[fetched], text))
        self.links.append(site.links)
        self.group.append(group)
        domain = name.removeprefix("www.")
        self.certificates.append(frozenset({domain, f"www.{domain}"}))
        return index

    def replicas(self, cause: Cause) -> None:
        """Add one group of replicas."""
        parameters, rng = self.parameters.copies[cause], self.rng
        group = len(self.cause)
        self.cause.append(cause)
        site = self.site()
        names, addresses = getattr(self, f"_{cause.value}")()
        original = self.host(names[0], addresses[0], site, group)
        if cause is Cause.LOAD_BALANCING and rng.random() < 0.5:
            self.certificates[original] = frozenset(names)
        for name, address in zip(names[1:], addresses[1:], strict=True):
            shown = self.copy(site, parameters)
            copy = self.host(name, address, shown, group)
            fetched = len(self.pages[copy][0])
            if rng.random() < parameters.redirect:
                self._redirect(copy, original, round(fetched * rng.uniform(0.5, 1.0)))
            elif rng.random() < parameters.canonical:
                self.canonicals[copy, original] = max(1, round(fetched * rng.uniform(0.6, 1.0)))
            if cause in (Cause.WWW, Cause.LOAD_BALANCING) and rng.random() < 0.5:
                self.certificates[copy] = self.certificates[original]

    def _redirect(self, copy: int, original: int, count: int) -> None:
        self.redirects[copy, original] = max(1, count)
        self.pages[copy][1][: max(1, count)] = 0
        if 2 * count > len(self.pages[copy][1]):
            self.rest[copy][1][:] = 0

    def _www(self) -> tuple[list[str], list[int]]:
        domain, address = self.name_source.domain(), self.own_address()
        other = address if self.rng.random() < 0.9 else self.own_address()
        return [domain, self.name_source.claim(f"www.{domain}")], [address, other]

    def _load_balancing(self) -> tuple[list[str], list[int]]:
        rng, domain = self.rng, self.name_source.domain()
        count = int(rng.integers(2, 6))
        stem = ("www", "web", "srv", "cache")[int(rng.integers(4))]
        names = [self.name_source.claim(f"{stem}{at + 1}.{domain}") for at in range(count)]
        network = int(rng.integers(1 << 16, 223 << 16)) << 8
        near = [network + int(octet) for octet in rng.integers(256, size=count)]
        return names, near if rng.random() < 0.8 else [self.own_address() for _ in names]

    def _franchise(self) -> tuple[list[str], list[int]]:
        rng, source = self.rng, self.name_source
        brand, top = source.word(), source.top_level()
        count, style, address = int(rng.integers(2, 7)), rng.random(), self.own_address()
        cities = rng.permutation(len(CITIES))[:count]
        names = []
        for city in cities:
            name = CITIES[city]
            if style < 0.4:
                names.append(source.claim(f"{name}.{brand}.{top}"))
            elif style < 0.8:
                names.append(source.claim(f"{brand}-{name}.{top}"))
            else:
                names.append(source.claim(f"{brand}.{source.top_level()}"))
        same = rng.random() < 0.5
        return names, [address if same else self.own_address() for _ in names]

    def _hosting_move(self) -> tuple[list[str], list[int]]:
        rng, source = self.rng, self.name_source
        domain, style = source.domain(), rng.random()
        if style < 0.25:
            old = source.other_top_level(domain)
        elif style < 0.6:
            old = source.claim(f"{domain.partition('.')[0]}.{source.word()}.{source.top_level()}")
        else:
            old = source.domain()
        return [domain, old], [self.own_address(), self.own_address()]

    def _malicious(self) -> tuple[list[str], list[int]]:
        rng, source = self.rng, self.name_source
        domain = source.domain()
        names = [domain]
        for _ in range(int(rng.integers(1, 4))):
            alike = rng.random() < 0.35
            names.append(source.misspelled(domain) if alike else source.domain())
        return names, [self.own_address() for _ in names]

    # --- look-alikes ---------------------------------------------------------------------------

    def languages(self) -> None:
        """Add the language versions of one site: the same paths, different texts."""
        rng, domain, site = self.rng, self.name_source.domain(), self.site()
        address, style = self.own_address(), rng.random()
        label = domain.partition(".")[0]
        free = rng.random(len(site.path)) < 2.0 * self.parameters.language_free * rng.random()
        for language in rng.permutation(len(LANGUAGES))[: int(rng.integers(2, 5))]:
            code = LANGUAGES[language]
            name = f"{label}.{code}" if style < 0.5 else f"{code}.{domain}"
            text = np.where(free, site.text, hash_keys(_TEXT, site.text, language))
            kept = rng.random(len(site.path)) < 0.9
            kept[0] = True
            version = SiteContent(
                site.number, site.path[kept], text[kept], site.dynamic[kept], site.links
            )
            self.host(self.name_source.claim(name), address, version)

    def topic(self, number: int) -> None:
        """Add a community of sites with equal texts on different addresses and paths."""
        rng, parameters = self.rng, self.parameters
        popularity = 1.0 / np.arange(1, 401) ** 0.7
        for _ in range(int(rng.integers(12, 31))):
            own = self.site(cms=number % _CMS_COUNT, pages=int(rng.integers(5, 40)))
            chosen = rng.choice(
                400, size=int(rng.integers(10, 60)), replace=False, p=popularity / popularity.sum()
            )
            usual = rng.random(len(chosen)) < parameters.topic_same_path
            equal = rng.random(len(chosen)) < parameters.topic_equal
            slug = hash_keys(_SLUG, number, chosen)
            text = hash_keys(_TEXT, number, chosen, 3)
            site = SiteContent(
                own.number,
                np.concatenate((own.path, np.where(usual, slug, hash_keys(slug, own.number)))),
                np.concatenate((own.text, np.where(equal, text, hash_keys(text, own.number)))),
                np.concatenate((own.dynamic, np.zeros(len(chosen), dtype=bool))),
                np.concatenate((own.links, hash_keys(_LINK, number, rng.integers(12, size=6)))),
            )
            self.host(self.name_source.domain(), self.own_address(), site)

    def platform(self, number: int) -> None:
        """Add a blog platform: many blogs under one domain, on a few addresses, with one CMS."""
        rng, source = self.rng, self.name_source
        domain = source.domain()
        addresses = [self.own_address() for _ in range(int(rng.integers(1, 4)))]
        for _ in range(int(rng.integers(30, 100))):
            name = source.claim(f"{source.word()}.{domain}")
            address = addresses[int(rng.integers(len(addresses)))]
            self.host(name, address, self.site(cms=number % _CMS_COUNT))

    def parking(self, number: int) -> None:
        """Add a company that parks domains: the same few pages, each with the domain's name."""
        rng = self.rng
        address = self.own_address()
        count = 300 if number < 2 else int(rng.integers(8, 31))
        paths = np.concatenate(([path_key("/")], hash_keys(_PATH, 10**9 + number, np.arange(3))))
        links = hash_keys(_LINK, 10**6 + number, np.arange(4))
        for at in range(count):
            text = hash_keys(_TEXT, 10**9 + number, np.arange(4), at)
            text[3] = hash_keys(_TEXT, 10**9 + number, 3)[0]  # the terms page names no domain
            shown = SiteContent(0, paths.astype(np.uint64), text, np.zeros(4, dtype=bool), links)
            self.host(self.name_source.domain(), address, shown)

    def family(self) -> None:
        """Add the sites of one company: equal paths, a few equal documents, different texts."""
        rng, source = self.rng, self.name_source
        brand, top, address = source.word(), source.top_level(), self.own_address()
        model = self.site()
        shared = rng.random(len(model.path)) < 0.4
        documents = np.zeros(len(model.path), dtype=bool)
        most = min(self.parameters.family_documents, len(documents))
        documents[rng.permutation(len(documents))[: int(rng.integers(most + 1))]] = True
        members = []
        for _ in range(int(rng.integers(2, 6))):
            product = source.word()
            name = f"{brand}{product}.{top}" if rng.random() < 0.5 else f"{product}.{brand}.{top}"
            own = hash_keys(_PATH, model.path, len(self.names))
            own[0] = model.path[0]
            path = np.where(shared | documents, model.path, own)
            text = np.where(documents, model.text, hash_keys(_TEXT, model.text, len(self.names)))
            site = SiteContent(model.number, path, text, model.dynamic, model.links)
            members.append(self.host(source.claim(name), address, site))
        if len(members) > 1 and rng.random() < 0.5:
            self._redirect(members[1], members[0], int(rng.integers(1, 3)))

    def broken(self) -> None:
        """Add a host that serves its hosting company's error page with status 200 on every path."""
        site = self.site()
        error = int(_ERRORS * self.rng.random())
        text = np.repeat(hash_keys(_ERROR, error), len(site.path))
        text[0] = site.text[0]
        static = np.zeros(len(text), dtype=bool)
        shown = SiteContent(site.number, site.path, text, static, site.links)
        self.host(self.name_source.domain(), self.own_address(), shown)

    # --- result --------------------------------------------------------------------------------

    def web(self) -> ReplicaWeb:
        """Return the web, with its hosts in random order."""
        parameters, rng = self.parameters, self.rng
        for cause in Cause:
            for _ in range(parameters.groups[cause]):
                self.replicas(cause)
        for _ in range(parameters.languages):
            self.languages()
        for number in range(parameters.topics):
            self.topic(number)
        for number in range(parameters.platforms):
            self.platform(number)
        for number in range(parameters.parkings):
            self.parking(number)
        for _ in range(parameters.families):
            self.family()
        for _ in range(parameters.broken):
            self.broken()
        while len(self.names) < parameters.hosts:
            self.host(self.name_source.domain(), self.own_address(), self.site())
        self._shared_certificates()
        return self._shuffled(rng.permutation(len(self.names)))

    def _shared_certificates(self) -> None:
        """Give one certificate to many unrelated hosts of one address, as hosting providers do."""
        by_address: dict[int, list[int]] = {}
        for host, address in enumerate(self.address):
            by_address.setdefault(address, []).append(host)
        for members in by_address.values():
            if len(members) >= 5 and self.rng.random() < 0.3:
                names = frozenset(self.names[host] for host in members[:60])
                for host in members[:60]:
                    self.certificates[host] = names

    def _shuffled(self, order: Ids) -> ReplicaWeb:
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        places = place.tolist()
        page_counts = np.array([len(path) for path, _ in self.pages])
        link_counts = np.array([len(keys) for keys in self.links])
        hosts = Hosts(
            names=tuple(self.names[at] for at in order),
            addresses=tuple(_dotted(self.address[at]) for at in order),
            page_host=np.repeat(place, page_counts),
            page_path=np.concatenate([path for path, _ in self.pages]),
            page_signature=np.concatenate([text for _, text in self.pages]),
            link_host=np.repeat(place, link_counts),
            link_target=np.concatenate(self.links),
            redirects={(places[a], places[b]): n for (a, b), n in self.redirects.items()},
            canonicals={(places[a], places[b]): n for (a, b), n in self.canonicals.items()},
            certificates=tuple(self.certificates[at] for at in order),
        )
        unfetched = UnfetchedPages(
            np.repeat(place, [len(path) for path, _ in self.rest]),
            np.concatenate([path for path, _ in self.rest]),
            np.concatenate([text for _, text in self.rest]),
        )
        group = np.array(self.group)[order]
        return ReplicaWeb(self.parameters, hosts, unfetched, group, tuple(self.cause))


def _dotted(address: int) -> str:
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))
