"""The memory of the machine, or the limit of a control group: versions 1 and 2, containers."""

import os

import pytest

from crawld.daemon.machine_memory import machine_memory_bytes

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MIB = 2**20


@pytest.fixture
def write(tmp_path):
    """Return a function that writes files of a root directory: paths to texts."""

    def make(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, MACHINE),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, MACHINE),
        (
            {
                "proc/self/cgroup": "0::/system.slice/crawld.service\n",
                "sys/fs/cgroup/system.slice/crawld.service/memory.max": f"{512 * MIB}\n",
            },
            512 * MIB,
        ),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/memory.max": f"{512 * MIB}\n",
                "sys/fs/cgroup/a/memory.max": f"{256 * MIB}\n",
            },
            256 * MIB,
        ),
        (
            # a container with a name space of its own sees its group at the top
            {
                "proc/self/cgroup": "0::/docker/123\n",
                "sys/fs/cgroup/memory.max": f"{300 * MIB}\n",
            },
            300 * MIB,
        ),
        (
            {
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/memory.max": f"{300 * MIB}\n",
                "sys/fs/cgroup/memory.high": f"{200 * MIB}\n",
            },
            200 * MIB,
        ),
        (
            {
                "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/x\n0::/\n",
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes": f"{100 * MIB}\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            100 * MIB,
        ),
        ({"proc/self/cgroup": "nonsense\n", "sys/fs/cgroup/memory.max": "1\n"}, MACHINE),
        ({"proc/self/cgroup": "0::/../x\n"}, MACHINE),
    ],
)
def test_the_least_limit_counts(write, files, expected):
    assert machine_memory_bytes(write(files)) == expected


def test_this_machine_has_memory():
    assert 0 < machine_memory_bytes() <= MACHINE
