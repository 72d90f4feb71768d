"""Learns which URLs of a host show the same text (DUST), from lists of URLs and a few comparisons.

    URLs of a host ─▶ likely rewrites (`likely`) ─▶ trial on pairs of pages (`trial`) ─▶ rules
    rules ─▶ the URL that stands for a URL (`rules`); they are compared on (`watch`)

Sources: Bar-Yossef, Keidar and Schonfeld 2009, "Do not crawl in the DUST: different URLs with
similar text" (likely rules by support, validation by samples); Dasgupta, Kumar and Sasturkar 2008,
"De-duping URLs via rewrite rules" (session ids and irrelevant path segments).
"""
