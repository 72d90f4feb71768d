"""The shape of the package, read from its syntax trees: what may import, name or touch what."""

import ast
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "crawld"


def _words(text):
    return frozenset(text.split())


# Lowest first; rooms on one line know nothing of each other.
LAYERS = (
    (
        *("errors", "extras", "marks", "workers", "fair_order"),
        *("pdf_child", "pdf_text", "thread_timer", "version"),
    ),
    ("memory", "process_status"),
    ("core",),
    ("plugins",),
    ("config",),
    ("plugin_host",),
    ("store",),
    ("net",),
    ("simweb", "sources"),
    ("web", "export", "lab"),
    ("dashboard",),
    ("daemon",),
    ("bench", "universe"),
    ("cli", "__main__"),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

# The same inside a room: its sub-packages and top modules, lowest first.
ROOM_LAYERS = {
    "store": (
        ("changed",),
        ("engine", "changes", "page_update"),
        ("seen",),
        ("frontier",),
        ("versions",),
        ("mirror", "replica", "visit", "visit_thinning", "doctor", "growth", "job", "notification"),
    ),
    "daemon": (
        (
            *("clock", "phase", "process", "machine_memory", "pacing"),
            *("stall_meter", "supervise", "waiting"),
        ),
        ("schedule", "plugged", "signals"),
        ("analysis_memory", "analysis_time", "freeze_watch", "memory_keeper"),
        ("analyser",),
        ("quarantine",),
        ("frontier", "disk_watch", "freshness_reader", "site_models"),
        ("fetch",),
        ("visit",),
        ("crawl",),
        ("hints",),
        ("jobs", "environment", "notify"),
        ("background", "start", "daemon_parts", "tidy"),
        ("daemon",),
        ("purge",),
        ("api",),
        ("dashboard",),
        ("mirror_listener",),
        ("run",),
    ),
}

# (importing module, imported module): why it may reach up or aside.
LAYER_EXCEPTIONS: dict[tuple[str, str], str] = {}

# What core may import: mathematics, text and types; nothing that waits or asks time or system.
CORE_STDLIB = _words(
    """
    __future__ abc array base64 binascii bisect calendar cmath codecs collections colorsys
    copy dataclasses datetime decimal difflib enum fnmatch fractions functools hashlib
    heapq html ipaddress itertools json keyword math numbers operator random re statistics
    string struct textwrap types typing unicodedata urllib.parse weakref zlib zoneinfo
    """
)
CORE_LIBRARIES = _words(
    """
    can_ada charset_normalizer idna numpy publicsuffixlist re2 xxhash crawld
    """
)
CORE_CONTENT_LIBRARIES = frozenset({"selectolax", "py3langid"})
# Ways to the clock that an allowed import opens.
CLOCK_CALLS = frozenset({"now", "utcnow", "today"})
# Without a seed they ask the system for one.
SEEDED_CALLS = frozenset({"Random", "default_rng"})

SOCKET_MODULES = _words(
    """
    socket ssl socketserver http.client urllib.request httpcore dns
    """
)
SOCKET_CALLS = _words(
    """
    open_tcp_stream open_tcp_listeners open_unix_socket open_ssl_over_tcp_stream serve_tcp
    serve_listeners SocketStream SocketListener getaddrinfo create_connection
    create_server
    """
)
SOCKET_ROOMS = ("net/", "simweb/")
# Where else a socket is touched, and why.
SOCKET_EXCEPTIONS = {
    "bench/crawld_process.py": "asks whether the control socket listens yet",
    "bench/event_server.py": "is the stream that the daemon hears, in a process of its own",
    "bench/nginx.py": "finds a free port for the server it starts",
    "bench/hostile_probe.py": "measures answers with as little of a client as will do",
    "bench/serve.py": "asks a server as fast as it can: as little of a client as will do",
}

# The daemon takes clock, threads and randomness from `daemon/environment.py`; no room of it may
# reach for its own.
SEAM_ROOMS = ("daemon/", "store/", "net/", "sources/", "web/", "workers")
SEAM_MODULES = _words("time secrets threading concurrent multiprocessing trio.to_thread")
SEAM_CALLS = _words("run_sync start_thread_soon as_async SystemRandom urandom uuid4")
SEAM_EXCEPTIONS = {
    "daemon/clock.py": "is the seam of time",
    "workers.py": "is the seam of threads",
    "store/versions/body.py": "keeps one compressor per thread",
    "store/versions/headers.py": "keeps one compressor per thread",
}

SQL_CALLS = frozenset({"execute", "executemany"})
# Where else SQL is, and why.
SQL_EXCEPTIONS = {
    "bench/seen_btree.py": "the baseline is a table of its own",
    "bench/seen_structure.py": "measures the space of the file",
    "bench/scrapy_peer.py": "the baseline keeps pages in a file of its own, as its users would",
}

FORBIDDEN_NAMES = _words(
    """
    util utils helper helpers common manager managers base misc
    """
)
MAX_LINES = 500

TEXT_FOLDERS = ("crawld", "migrations", "etc", "contrib", "tests", ".ci")
TEXT_FILES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "Makefile", "pyproject.toml")
TEXT_SUFFIXES = frozenset(
    {"", ".py", ".sql", ".toml", ".md", ".txt", ".sh", ".json", ".service", ".1", ".5", ".html"}
)
# Written in halves, since this file is read too.
MACHINE_PATH = re.compile(
    "|".join(("/wo" + "rk/", "/ho" + r"me/\w", "/ro" + r"ot/", r"\.\./sha" + "red"))
)


PATHS = sorted(PACKAGE.rglob("*.py"))


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path) for path in PATHS}


@dataclass(frozen=True)
class Call:
    """A call: the last name of what is called and, of `owner.name()`, the plain name before it."""

    name: str
    line: int
    owner: str
    has_arguments: bool


@dataclass(frozen=True)
class Module:
    """What the checks need of a file: syntax trees of the whole package take 85 MB.

    Attributes:
        imports: (module imported, line) of every import, also of those inside functions.
    """

    path: str
    name: str
    imports: tuple[tuple[str, int], ...]
    calls: tuple[Call, ...]
    classes: tuple[str, ...]

    @property
    def room(self):
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""


def parsed(code, path, name):
    nodes = list(ast.walk(ast.parse(code)))
    imports = tuple(each for node in nodes for each in imports_of(node, name))
    calls = tuple(each for node in nodes for each in calls_of(node))
    classes = tuple(node.name for node in nodes if isinstance(node, ast.ClassDef))
    return Module(path, name, imports, calls, classes)


def imports_of(node, name):
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, node.lineno
    elif isinstance(node, ast.ImportFrom):
        source = node.module or ""
        if node.level:
            above = name.split(".")[: -node.level or None]
            source = ".".join([*above, *filter(None, [source])])
        for alias in node.names:
            # `from crawld.store import page` imports the module, not a name in it.
            whole = f"{source}.{alias.name}"
            yield (whole if whole in FILES else source), node.lineno


def calls_of(node):
    if not isinstance(node, ast.Call):
        return
    has_arguments = bool(node.args or node.keywords)
    if isinstance(node.func, ast.Attribute):
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        yield Call(node.func.attr, node.lineno, owner, has_arguments)
    elif isinstance(node.func, ast.Name):
        yield Call(node.func.id, node.lineno, "", has_arguments)


@pytest.fixture(scope="module")
def modules():
    return [
        parsed(
            path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).as_posix(), name_of(path)
        )
        for path in PATHS
    ]


def called(module, names):
    """Yield a fault for each call of one of some names."""
    for call in module.calls:
        if call.name in names:
            yield f"{module.path}:{call.line} calls {call.name}()"


def within(name, allowed):
    """Say whether a dotted name is one of some modules or inside one."""
    return any(name == module or name.startswith(f"{module}.") for module in allowed)


def layer_faults(module, exceptions):
    for imported, line in module.imports:
        room = imported.split(".")[1] if imported.startswith("crawld.") else ""
        if not room or room == module.room or (module.name, imported) in exceptions:
            continue
        if LEVEL[room] >= LEVEL[module.room]:
            yield f"{module.path}:{line} imports {imported}"


def room_faults(module, layers):
    level = {part: level for level, parts in enumerate(layers) for part in parts}
    path = module.name.split(".")
    for imported, line in module.imports:
        target = imported.split(".")
        if target[:2] != path[:2] or len(target) < 3 or target[2] == path[2]:
            continue
        if level[target[2]] >= level[path[2]]:
            yield f"{module.path}:{line} imports {imported}"


def import_circles(modules):
    """Return the groups of modules that import each other, directly or through others.

    Source: Tarjan 1972, strongly connected components.
    """
    names = {module.name for module in modules}
    graph = {
        module.name: sorted({name for name, _ in module.imports} & names) for module in modules
    }
    order, low, path, circles = {}, {}, [], []

    def visit(name):
        order[name] = low[name] = len(order)
        path.append(name)
        for imported in graph[name]:
            if imported not in order:
                visit(imported)
            if imported in path:
                low[name] = min(low[name], low[imported])
        if low[name] == order[name]:
            circle = path[path.index(name) :]
            del path[path.index(name) :]
            if len(circle) > 1:
                circles.append(sorted(circle))

    for name in graph:
        if name not in order:
            visit(name)
    return circles


def core_faults(module):
    allowed = CORE_STDLIB | CORE_LIBRARIES
    if module.path.startswith("core/content/"):
        allowed |= CORE_CONTENT_LIBRARIES
    for imported, line in module.imports:
        if not within(imported, allowed):
            yield f"{module.path}:{line} imports {imported}"
    yield from called(module, CLOCK_CALLS | {"open"})
    for call in module.calls:
        if call.name in SEEDED_CALLS:
            if not call.has_arguments:
                yield f"{module.path}:{call.line} calls {call.name}() without a seed"
        elif call.owner == "random":
            yield f"{module.path}:{call.line} calls random.{call.name}(), which nobody seeded"


def sql_faults(module):
    yield from called(module, SQL_CALLS)


def socket_faults(module):
    for imported, line in module.imports:
        if within(imported, SOCKET_MODULES):
            yield f"{module.path}:{line} imports {imported}"
    yield from called(module, SOCKET_CALLS)


def seam_faults(module):
    for imported, line in module.imports:
        if within(imported, SEAM_MODULES):
            yield f"{module.path}:{line} imports {imported}"
    yield from called(module, SEAM_CALLS)
    for call in module.calls:
        if call.name == "Random" and not call.has_arguments:
            yield f"{module.path}:{call.line} calls Random() without a seed"


def module_of(code, path="core/some.py"):
    name = "crawld." + path.removesuffix(".py").replace("/", ".")
    return parsed(code, path, name)


def test_the_package_was_read(modules):
    assert len(modules) > 50
    assert {module.room for module in modules} - {""} <= set(LEVEL)


def test_imports_go_down_only(modules):
    assert [fault for module in modules for fault in layer_faults(module, LAYER_EXCEPTIONS)] == []


@pytest.mark.parametrize("room", ROOM_LAYERS)
def test_imports_inside_a_room_go_down_only(modules, room):
    inside = [module for module in modules if module.room == room and module.name.count(".") > 1]
    layers = ROOM_LAYERS[room]
    found = [fault for module in inside for fault in room_faults(module, layers)]
    assert found == []


def test_no_modules_import_each_other(modules):
    assert import_circles(modules) == []


def test_an_import_circle_is_found():
    code = {
        "a": "def f():\n    from crawld.core.b import f",
        "b": "from crawld.core.c import g",
        "c": "if TYPE_CHECKING:\n    import crawld.core.a",
        "d": "from crawld.core.a import f",
    }
    circles = import_circles([module_of(text, f"core/{name}.py") for name, text in code.items()])
    assert circles == [["crawld.core.a", "crawld.core.b", "crawld.core.c"]]


def test_layer_exceptions_are_used(modules):
    used = {(module.name, imported) for module in modules for imported, _ in module.imports}
    assert set(LAYER_EXCEPTIONS) <= used


def test_core_is_pure(modules):
    core = [module for module in modules if module.room == "core"]
    assert [fault for module in core for fault in core_faults(module)] == []


def faults_by_file(check, modules):
    found = {module.path: list(check(module)) for module in modules}
    return {path: faults for path, faults in found.items() if faults}


def test_sql_only_in_the_store(modules):
    others = [module for module in modules if module.room != "store"]
    assert set(faults_by_file(sql_faults, others)) == set(SQL_EXCEPTIONS)


def test_sockets_only_in_their_rooms(modules):
    others = [module for module in modules if not module.path.startswith(SOCKET_ROOMS)]
    assert set(faults_by_file(socket_faults, others)) == set(SOCKET_EXCEPTIONS)


def test_sql_draws_nothing_at_random():
    texts = {path: path.read_text() for path in (PACKAGE / "store").rglob("*.py")}
    assert [path for path, text in texts.items() if re.search(r"\brandom(blob)?\(\)", text)] == []


def test_clock_threads_and_randomness_come_in_at_start(modules):
    rooms = [module for module in modules if module.path.startswith(SEAM_ROOMS)]
    assert set(faults_by_file(seam_faults, rooms)) == set(SEAM_EXCEPTIONS)


def test_a_public_class_name_stands_in_one_module(modules):
    # The Scrapy peer names its spiders as Scrapy users do.
    named = [name for module in modules if "scrapy" not in module.path for name in module.classes]
    counts = Counter(name for name in named if not name.startswith("_"))
    assert [name for name, count in counts.items() if count > 1] == []


def test_no_room_for_anything(modules):
    names = {part.removesuffix(".py") for module in modules for part in Path(module.path).parts}
    assert names & FORBIDDEN_NAMES == set()


def test_files_are_short():
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    lines = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in files}
    assert {path: count for path, count in lines.items() if count > MAX_LINES} == {}


def test_no_path_of_a_machine():
    folders = [path for name in TEXT_FOLDERS for path in (ROOT / name).rglob("*")]
    files = [path for path in folders if path.is_file() and path.suffix in TEXT_SUFFIXES]
    files += [ROOT / name for name in TEXT_FILES if (ROOT / name).exists()]
    assert len(files) > 100
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files
        if (match := MACHINE_PATH.search(path.read_text(encoding="utf-8", errors="replace")))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("check", "path", "code"),
    [
        ("layer", "core/some.py", "from crawld.store import page"),
        ("layer", "core/some.py", "def f():\n    import crawld.daemon.crawl.loop"),
        ("layer", "net/some.py", "from ..daemon import crawl"),
        ("layer", "lab/some.py", "from crawld.web import pages"),
        ("room", "store/frontier/some.py", "from crawld.store.versions import body"),
        ("room", "store/mirror/some.py", "from crawld.store.replica import pair"),
        ("core", "core/some.py", "import time"),
        ("core", "core/some.py", "from urllib.request import urlopen"),
        ("core", "core/some.py", "import selectolax.lexbor"),
        ("core", "core/some.py", "import datetime\ndatetime.datetime.now()"),
        ("core", "core/some.py", "open('file')"),
        ("core", "core/some.py", "import random\nrandom.shuffle(pages)"),
        ("core", "core/some.py", "import numpy as np\nnp.random.default_rng()"),
        ("sql", "daemon/some.py", "await connection.execute('SELECT 1')"),
        ("socket", "daemon/some.py", "import socket"),
        ("seam", "daemon/some.py", "import time"),
        ("seam", "net/some.py", "import trio\nawait trio.to_thread.run_sync(f)"),
        ("seam", "daemon/jobs/some.py", "import random\nrandom.Random()"),
        ("room", "daemon/visit/some.py", "from crawld.daemon.crawl import state"),
        ("socket", "lab/some.py", "import trio\ntrio.open_tcp_stream('a', 1)"),
    ],
)
def test_each_check_finds_its_fault(check, path, code):
    module = module_of(code, path)
    found = {
        "layer": lambda: layer_faults(module, {}),
        "room": lambda: room_faults(module, ROOM_LAYERS[module.room]),
        "core": lambda: core_faults(module),
        "sql": lambda: sql_faults(module),
        "socket": lambda: socket_faults(module),
        "seam": lambda: seam_faults(module),
    }[check]()
    assert len(list(found)) == 1


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("core/content/some.py", "import selectolax.lexbor"),
        ("core/some.py", "import hashlib, numpy as np\nfrom crawld.core.url import parse"),
        ("core/some.py", "from urllib.parse import urlsplit"),
        ("core/some.py", "import random\nrandom.Random(seed)"),
    ],
)
def test_what_core_may(path, code):
    module = module_of(code, path)
    assert list(core_faults(module)) + list(layer_faults(module, {})) == []


def test_core_may_use_only_what_exists():
    assert {name.split(".")[0] for name in CORE_STDLIB} <= set(sys.stdlib_module_names)
