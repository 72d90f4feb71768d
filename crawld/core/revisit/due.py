"""Until when work that is known should be done: one due time per kind of work of a host.

A host does the work that is due first, of all its sites, whatever its kind: a page that shows
another text now, an image, the visit that confirms a deletion. Work is done before its due time
whenever nothing else is due sooner, so a due time decides only while work waits.

    work                                             due, seconds after it was reported
    a page came back, or another page took its URL   0: readers see what is not there
    an edited page                                   5 after its change, while it can be so soon
    an edited page that cannot                       12; reported late: as late again, up to 35
    an edited page that was not visited by then      60, after those that still can be
    an image or style that was replaced, a retry     30 after its retry time
    the first of the new images and styles           20 after the one before it
    an audit                                         30
    a deletion or move to be confirmed, a picture    never, but after users of templates:
    that was replaced, for dense screens             readers see the mark, or the other picture

Users of an edited template get the turns that are left, and one of `REST_EVERY` while none is: a
template of many users would delay all edits for minutes. Their due times order them among each
other only: 4 s after the report for each user of the template, so that one of few users does not
wait for one of many, but never less than 200 s. Whatever their order, users wait as long on
average; so those of up to 50 come in the order of the reports, and the last of them is seen sooner.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

AT_ONCE: Final = -math.inf
"""Due before all other work."""

AT_LEISURE: Final = math.inf
"""After all that is known to be wrong, before revisits on suspicion."""

SOON_S: Final = 5.0
"""A page should be visited so soon after its change. As many as possible are: one for which it is
too late does not take the turn of one for which it is not."""

PROMPT_S, BELATED_S = 12.0, 35.0
"""Otherwise it is due `PROMPT_S` after its change was reported. A change that was itself reported
late, such as one of an outage, may wait once more as long as it has, up to `BELATED_S`: new edits
do not wait behind all those of an outage, and these are read soon, too."""

MISSED_S: Final = 48.0
"""A page that was not visited in time is due so much later, once, a minute after its report: if all
were visited in the order of their due times after a minute without requests, each later edit would
miss its own, too."""

AUDIT_S: Final = 30.0
RETRY_S: Final = 30.0
MISSING_S: Final = 20.0
"""New images and styles have turns of their own so seldom: a page that was visited again shows
some, and thousands of them wait while a host is mirrored for the first time."""

FAN_OUT_S, FAN_OUT_LEAST_S = 4.0, 200.0
"""A user of an edited template is due so much later for each user that the template has, and so
much later at least: templates of few users that are edited again and again do not delay the last
users of one that was edited before."""

REST_EVERY: Final = 30
"""While work with due times uses up all turns, one of so many is for the rest."""


class Due(NamedTuple):
    """Until when a page should be visited: the first of these times that is not over, or the last.

    Unix seconds or those of a monotonic clock.
    """

    soon_at: float
    at: float
    missed_at: float

    @classmethod
    def by(cls, at: float) -> Due:
        """Return a single time."""
        return cls(at, at, at)

    @classmethod
    def of_edit(cls, changed_at: float, reported_at: float) -> Due:
        """Return the times of a page that changed and was reported at some times.

        A change that was reported late is never due later: it has waited as long before.
        """
        told_s = reported_at - changed_at
        at = reported_at + min(max(told_s, PROMPT_S), BELATED_S)
        return cls(changed_at + SOON_S, at, at if told_s > PROMPT_S else at + MISSED_S)

    @classmethod
    def of_user(cls, reported_at: float, users: int) -> Due:
        """Return the time of a page that includes a template with so many users."""
        return cls.by(reported_at + max(FAN_OUT_S * users, FAN_OUT_LEAST_S))

    def joined(self, other: Due) -> Due:
        """Return the earlier times of both."""
        return Due(*map(min, self, other))

    def later(self, by_s: float) -> Due:
        """Return the times by so many seconds later."""
        return Due(*(each + by_s for each in self))
