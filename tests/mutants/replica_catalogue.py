"""Named faults in what finds replicas and lets them rest."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

REPLICA_MUTANTS = (
    Mutant(
        "a reported page is compared although its original changed with it",
        "crawld/core/replica/sampling.py",
        "        if not page.twin_changed\n        and (",
        "        if (",
        ("tests/unit/daemon/jobs/replicas/test_reported.py",),
    ),
    Mutant(
        "twins agree by their texts, whatever they embed",
        "crawld/daemon/jobs/replicas/twin_texts.py",
        "    return _Digests(text, embedded)\n",
        '    return _Digests(text, b"")\n',
        ("tests/unit/daemon/jobs/replicas/test_twin_texts.py",),
    ),
    Mutant(
        "the pages of a host at other ports are those of its default server",
        "crawld/store/frontier/server.py",
        '    return f"{page}.host_id = {host_of(server)} AND {of_page(page)} = {server}"\n',
        '    return f"{page}.host_id = {host_of(server)}"\n',
        ("tests/unit/store/replica/test_servers.py",),
    ),
    Mutant(
        "a replica answers for a page at another port of its canonical host",
        "crawld/store/replica/pages.py",
        "WHERE own.twin_id = ? AND own.server_id = ? AND page.state = 'suspended'",
        "WHERE ?1 AND own.server_id = ? AND page.state = 'suspended'",
        ("tests/unit/store/replica/test_servers.py",),
    ),
    Mutant(
        "a root page that waits for its twin is not known to differ",
        "crawld/daemon/jobs/replicas/section_plan.py",
        "            return None if self.row.root is None else bool(self.row.root)\n",
        "            return None\n",
        ("tests/unit/daemon/jobs/replicas/test_section_plan.py",),
    ),
    Mutant(
        "branches rest under the first in the order, with whatever it shares",
        "crawld/daemon/jobs/replicas/plan.py",
        "        order.sort(key=lambda host: -gains[host])\n",
        "        order.sort(key=lambda host: 0 * gains[host])\n",
        ("tests/unit/daemon/jobs/replicas/test_plan.py",),
    ),
    Mutant(
        "branches change their host for little",
        "crawld/daemon/jobs/replicas/plan.py",
        "        return STAYING * pages if self._rests(copy, kept) else pages\n",
        "        return pages\n",
        ("tests/unit/daemon/jobs/replicas/test_plan.py",),
    ),
    Mutant(
        "a host that is kept rests under another",
        "crawld/daemon/jobs/replicas/plan.py",
        "            if copy in found or copy in keeping:\n",
        "            if copy in found:\n",
        ("tests/unit/daemon/jobs/replicas/test_plan.py",),
    ),
    Mutant(
        "pages of a replica are compared with those of the canonical host alone",
        "crawld/daemon/jobs/replicas/comparing.py",
        "        if not row.alternates or turn >= len(row.alternate_ids):\n",
        "        if row.alternates or turn >= len(row.alternate_ids):\n",
        ("tests/unit/daemon/jobs/replicas/test_alternates.py",),
    ),
    Mutant(
        "a page goes on resting under one that rests itself",
        "crawld/daemon/jobs/replicas/resting.py",
        "    for page_id, host in replica_pages.orphans(connection, resting):\n",
        "    for page_id, host in replica_pages.orphans(connection, resting[:0]):\n",
        ("tests/unit/daemon/jobs/replicas/test_alternates.py",),
    ),
    Mutant(
        "what rests under an alternate agrees with the canonical host",
        "crawld/daemon/jobs/replicas/section_plan.py",
        "            plan.add(page._replace(standing=Standing.DIFFERS))\n",
        "            plan.add(page)\n",
        ("tests/unit/daemon/jobs/replicas/test_alternates.py",),
    ),
    Mutant(
        "a redirect to a copy that rests differs from its original",
        "crawld/daemon/jobs/replicas/twin_texts.py",
        "        and (server_name(to) == canonical_host or facts.leads_to_copy)\n",
        "        and server_name(to) == canonical_host\n",
        ("tests/unit/daemon/jobs/replicas/test_alternates.py",),
    ),
    Mutant(
        "two machines rest under each other",
        "crawld/daemon/jobs/replicas/plan.py",
        "            if other < copy or not self._may_show(other, copy):\n",
        "            if other >= 0:\n",
        ("tests/unit/daemon/jobs/replicas/test_alternates.py",),
    ),
    Mutant(
        "a host moves to and fro between two others",
        "crawld/daemon/jobs/replicas/plan.py",
        "            if may_stay and group.stays(copy, kept, found):\n",
        "            if copy < 0:\n",
        ("tests/unit/daemon/jobs/replicas/test_alternates.py",),
    ),
    Mutant(
        "of a page that is a table of numbers, the numbers are noise",
        "crawld/core/content/twin.py",
        "    if len(noisy) <= MOST_NOISY * len(blocks.texts):\n",
        "    if len(noisy) <= len(blocks.texts):\n",
        ("tests/unit/core/content/test_twin.py",),
    ),
)
