"""Visits by a policy, slot by slot."""

from crawld.core.revisit.policies import VisitObservation


def visit(policy, now, *, changed=True):
    """Visit the page that the policy selects; return it, None if it selects none."""
    page = policy.select(now)
    if page is not None:
        policy.record_visit(page, now, VisitObservation(changed))
    return page


def visit_slots(policy, count, *, start=0.0, step=1.0):
    """Return what the policy selects at equally spaced slots."""
    return [visit(policy, start + k * step) for k in range(count)]
