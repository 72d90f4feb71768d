"""The experiments of `crawld lab all`: their commands, quick and full, and what was published.

An argument `{histories}`, `{start}`, `{json}` or `{plot}` stands for a file or date of the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Experiment:
    """One command of the laboratory.

    Attributes:
        name: of its files.
        title: what it shows.
        published: what the studies say.
        arguments: of `crawld lab`, at full size.
        quick: options that replace those of the full size, or are added.
        columns: of its rows that a reader compares.
    """

    name: str
    title: str
    published: str
    arguments: tuple[str, ...]
    quick: Mapping[str, str]
    columns: tuple[str, ...]

    def command(self, *, quick: bool, values: Mapping[str, str]) -> list[str]:
        """Return the arguments of `crawld lab` for a run.

        Args:
            quick: at small size.
            values: what stands for each name in braces.
        """
        arguments = list(self.arguments)
        for option, value in self.quick.items() if quick else ():
            if option in arguments:
                arguments[arguments.index(option) + 1] = value
            else:
                arguments += [option, value]
        return [argument.format_map(values) for argument in arguments]

    @property
    def prints_json(self) -> bool:
        """Whether the result is what the command prints, not a file that it writes."""
        return "{json}" not in self.arguments


_SCORES: Final = ("policy", "visits_per_page_day", "freshness")
_YEAR: Final = ("--histories", "{histories}", "--from", "{start}", "--duration", "365d")


def _simulation(
    name: str,
    title: str,
    published: str,
    options: Sequence[str],
    quick: Mapping[str, str],
) -> Experiment:
    arguments = ("simulate", *_YEAR, *options, "--json", "{json}")
    return Experiment(name, title, published, arguments, quick, _SCORES)


_SEVEN: Final = "uniform,random,proportional,merge,delayed,greedy,index"
_HOT: Final = ("--min-changes", "300", "--budget", "0.115,0.346,0.576")
_ALL: Final = ("--min-changes", "10", "--budget", "0.05,0.1,0.3")
_HINTED: Final = "uniform,merge,greedy-ncis,index"
_LOSSY: Final = "lag=60,miss=0.2,false=0.2"
_MONTH: Final = MappingProxyType({"--duration": "30d", "--min-changes": "25", "--budget": "0.346"})
"""A month of the year, for the policies that allocate again each hour."""

EXPERIMENTS: Final = (
    Experiment(
        "fit",
        "Which distribution the intervals between changes follow",
        "PUC-Rio, figure 6.1: a renewal process with a heavy tail, not Poisson",
        ("fit", "--histories", "{histories}", "--json", "{json}", "--plot", "{plot}"),
        {"--pages": "20"},
        ("family", "log_likelihood_per_interval", "aic_above_best", "pages_best"),
    ),
    Experiment(
        "curve",
        "Best revisit frequency over the change rate",
        "Cho and Garcia-Molina (2003), table 2: 1.15, 1.36, 1.35, 1.14, 0; Oslo, figure 4.2",
        ("curve", "--json", "{json}", "--plot", "{plot}"),
        {},
        ("changes", "rate_per_day", "published", "visits_per_day"),
    ),
    *(
        Experiment(
            name,
            f"Steady and batch crawling, in place and shadowing, {of}",
            "Cho and Garcia-Molina (2000), table 2: .88, .77, .88, .86",
            ("modes", *options, "--json", "{json}"),
            {},
            ("mode", "published", "closed_form", "freshness"),
        )
        for name, of, options in (
            ("modes", "Poisson pages", ()),
            ("modes-recorded", "recorded pages", ("--histories", "{histories}")),
        )
    ),
    Experiment(
        "shapes",
        "INDEX minus the best of three simpler policies, on sixteen shapes of sites",
        "no publication",
        ("shapes", "--json", "{json}"),
        {"--shape": "periodic,young-news", "--pages": "60"},
        ("shape", "visits a page and day", "index", "margin"),
    ),
    Experiment(
        "classes",
        "What classes and Gamma priors tell of pages without a history",
        "Oslo, section 4.8: rate classes",
        ("classes", "--histories", "{histories}", "--json", "{json}"),
        {},
        ("prior", "after_days", "changed", "log_score"),
    ),
    _simulation(
        "hot",
        "Policies on pages with at least 300 changes in the year",
        "PUC-Rio: MERGE within .4 points of UNPOLITE",
        ("--policies", f"{_SEVEN},greedy-printed,merge-past", *_HOT),
        _MONTH,
    ),
    _simulation(
        "all",
        "Policies on pages with at least 10 changes in the year",
        "PUC-Rio: MERGE 10.3 points above GREEDY",
        ("--policies", f"{_SEVEN},merge-past", *_ALL),
        {"--budget": "0.1", "--policies": "uniform,random,proportional,merge-past,greedy,index"},
    ),
    _simulation(
        "hindsight",
        "The same pages, when a policy knows the changes of the year itself",
        "PUC-Rio, chapter 6: policies know the histories that they are scored on",
        ("--hindsight", "--policies", "merge,greedy,greedy-printed,unpolite", *_HOT),
        {"--budget": "0.346"},
    ),
    _simulation(
        "greedy",
        "GREEDY with three simulated renewals and histograms that grow with visits",
        "PUC-Rio, chapter 5: GREEDY slightly below RANDOM",
        ("--policies", "random,merge,greedy-sampled,greedy-sampled-printed", *_HOT),
        _MONTH,
    ),
    _simulation(
        "figure-6-3",
        "Freshness over bandwidth, 10,000 pages at one request in 15 s",
        "PUC-Rio, figure 6.3: MERGE 2.9 to 1.5 points above MERGE2",
        (
            *("--policies", "uniform,random,merge,merge2,delayed,unpolite,index"),
            *("--min-changes", "300", "--interval", "15", "--plot", "{plot}"),
        ),
        {"--fractions": "0.4,1", "--duration": "61d", "--min-changes": "50"},
    ),
    _simulation(
        "hints",
        "Changes told 60 s late",
        "Busa-Fekete et al. (2025): GREEDY-NCIS close to the optimum, on Poisson pages",
        ("--policies", f"{_HINTED},relaxed,clairvoyant", "--hints", "lag=60", *_HOT),
        _MONTH,
    ),
    _simulation(
        "hints-all",
        "Changes told 60 s late, pages with at least 10 changes in the year",
        "no publication",
        ("--policies", f"{_HINTED},relaxed,clairvoyant", "--hints", "lag=60", *_ALL),
        {"--budget": "0.05", "--policies": "index,relaxed,clairvoyant"},
    ),
    Experiment(
        "forecast",
        "The freshness of a year, forecast before it, and what INDEX keeps in it",
        "no publication",
        (
            *("forecast", "--histories", "{histories}", "--from", "{start}", "--past-changes", "3"),
            *("--budget", "0.1,0.3", "--json", "{json}"),
        ),
        {"--budget": "0.3", "--pages": "100"},
        ("hints", "visits a page and day", "changes", "simulated", "forecast", "Poisson"),
    ),
    _simulation(
        "lossy-hints",
        "Hints 60 s late, a fifth of them missed and a fifth false",
        "no publication",
        ("--policies", _HINTED, "--hints", _LOSSY, *_HOT),
        _MONTH,
    ),
    _simulation(
        "lossy-hints-all",
        "The same hints, pages with at least 10 changes in the year",
        "no publication",
        ("--policies", "index", "--hints", _LOSSY, *_ALL),
        {"--budget": "0.05"},
    ),
    Experiment(
        "webbase",
        "Allocations and policies on a synthetic web, over bandwidth",
        "PUC-Rio, WEBBASE: DELAYED and MERGE less than 2.4 points below POLITE",
        ("webbase", "--json", "{json}", "--plot", "{plot}"),
        {"--pages": "50000", "--hosts": "200"},
        ("policy", "bandwidth_share", "freshness"),
    ),
    Experiment(
        "peak",
        "The busiest second of an hour, and its bound",
        "PUC-Rio, chapter 5: equal spacing bounds the probability of a peak",
        ("peak", "--hosts", "5462", "--seeds", "12", "--json", "{json}"),
        {"--hosts": "500", "--seeds": "3"},
        ("policy", "peak_to_mean", "measured_probability", "bound_probability"),
    ),
    *(
        Experiment(
            f"estimate-{kind}",
            f"Estimators of the change rate, {kind} changes",
            "Cho and Garcia-Molina (2003): the count of visible changes is biased downwards",
            ("estimate", kind, "--pages", "500", "--json"),
            {"--pages": "60"},
            ("estimator", "bias_per_day", "rmse_per_day", "log_rmse"),
        )
        for kind in ("poisson", "bursty", "periodic")
    ),
    Experiment(
        "prune",
        "Requests and freshness that pruned replicas give to other pages",
        "UFMG: 19 % fewer URLs at a false positive rate of .005",
        ("prune", "--hosts", "6000", "--json"),
        {"--hosts": "500"},
        ("hosts", "pruned", "wrongly", "saved", "before", "after"),
    ),
    Experiment(
        "dust",
        "Duplicate requests that learnt rules avoid on simulated sites, and wrong merges",
        "Bar-Yossef, Keidar, Schonfeld (2009): rules from lists of URLs, verified by few fetches",
        ("dust", "--site", "all", "--seeds", "5", "--json"),
        {"--site": "causes,comments", "--seeds": "1", "--pages": "300"},
        ("site", "seed", "urls", "avoided", "validation_share", "wrong", "missed"),
    ),
    Experiment(
        "replicas",
        "Replicas found without labels on simulated webs",
        "UFMG: areas under the curve PNU .9950, PU .9908, NU .9688, upper bound .9956",
        ("replicas", "--web", "easy,standard,hard", "--seeds", "5", "--json"),
        {"--web": "easy", "--seeds": "1"},
        ("web", "auc_pnu_five", "auc_pu_five", "auc_nu_five", "auc_upper_five"),
    ),
)
"""All experiments, cheap ones first."""
