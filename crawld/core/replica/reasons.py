"""The evidence on a pair of hosts in words, for people."""

from __future__ import annotations

from crawld.core.replica.names import difference_in_words
from crawld.core.replica.owners import are_editions
from crawld.core.replica.verdict import (
    HostAgreement,
    PairEvidence,
    is_undecided,
    pages_to_probe,
)


def reasons(evidence: PairEvidence, agreement: HostAgreement | None = None) -> list[str]:
    """Return the reasons in words, the strongest first.

    Args:
        agreement: of the pages of one with those of the other; None: not compared one by one.

    >>> reasons(PairEvidence(names=("www.a.com", "a.com"), pages=(60, 52), common=44, compared=44,
    ...                      equal=41, same_address=True))
    ['same text on 41 of 44 shared paths', 'names differ by www.', 'same address']
    """
    words = _declarations(evidence)
    compared = agreement.agreeing + agreement.differing if agreement is not None else 0
    if agreement is not None and compared:
        words.append(f"{agreement.agreeing} of {compared} pages agree, compared one by one")
    if evidence.compared:
        similar = f", similar on {int(evidence.partial)}" if evidence.partial >= 1.0 else ""
        words.append(f"same text on {evidence.equal} of {evidence.compared} shared paths{similar}")
    else:
        words.append(f"{evidence.common} shared paths, no content to compare")
    if difference := difference_in_words(*evidence.names):
        words.append(difference)
    if evidence.same_address:
        words.append("same address")
    if evidence.same_certificate:
        words.append("one certificate names both")
    root = evidence.root if agreement is None or agreement.root is None else agreement.root
    return words + _doubts(evidence, root=root, is_compared=compared > 0)


def _declarations(evidence: PairEvidence) -> list[str]:
    words = []
    for side in (0, 1):
        here, there = evidence.names[side], evidence.names[1 - side]
        if count := evidence.redirects[side]:
            words.append(f"{count} of {evidence.pages[side]} pages of {here} redirect to {there}")
        if count := evidence.canonicals[side]:
            words.append(
                f"{count} of {evidence.pages[side]} pages of {here} name {there} as canonical"
            )
    return words


def _doubts(evidence: PairEvidence, *, root: bool | None, is_compared: bool) -> list[str]:
    words = []
    if evidence.weight is not None and evidence.weight < evidence.alike / 2:
        words.append(f"these texts are on other hosts too and count as {evidence.weight:.1f}")
    if root is False:
        words.append("the root pages differ")
    if are_editions(*evidence.names):
        words.append("the names are those of versions or languages of one thing")
    if not is_compared and is_undecided(evidence) and (more := pages_to_probe(evidence)):
        words.append(
            f"{more} more shared paths with equal texts would show that one may copy the other"
        )
    return words
