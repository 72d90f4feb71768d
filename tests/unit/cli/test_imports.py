"""What a start imports, and how."""

import gc
import subprocess
import sys
from functools import cache

from crawld.cli.imports import uncollected


def test_nothing_is_collected_while_a_program_is_imported():
    frozen = gc.get_freeze_count()
    try:
        with uncollected():
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() > frozen
    finally:
        gc.unfreeze()
        gc.freeze()  # as all collected tests were


@cache
def modules_after(names, *, before="pass"):
    code = f"{before}; import {names}, sys; print(*sys.modules)"
    return {
        *subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.split()
    }


def test_a_daemon_imports_neither_templates_nor_a_resolver_that_it_may_not_use():
    modules = modules_after("crawld.daemon.run")
    assert "crawld.daemon.mirror_listener" in modules
    assert not {"crawld.web.app", "jinja2", "dns"} & modules


def test_a_mirror_imports_no_application_of_the_control_socket():
    modules = modules_after("crawld.cli.mirror, crawld.daemon.run")
    assert "crawld.daemon.api.control_socket" in modules
    assert not {"fastapi", "crawld.daemon.api.schemas.status"} & modules


def test_a_mirror_imports_nothing_that_runs_beside_the_turns_of_a_daemon():
    modules = modules_after("crawld.cli.mirror, crawld.daemon.run")
    parts = ("crawld.daemon.background", "crawld.daemon.notify.notifier")
    jobs = {name for name in modules if name.startswith("crawld.daemon.jobs.")}
    assert not modules.intersection(parts)
    assert jobs == {"crawld.daemon.jobs.search_index"}


def test_a_daemon_imports_what_runs_beside_its_turns_before_it_serves():
    assert "crawld.daemon.background" in modules_after("crawld.cli.run")


def test_packages_that_only_happen_to_be_installed_are_not_imported():
    alone = "from crawld.cli.imports import import_alone; import_alone()"
    modules = modules_after("crawld.cli.mirror, crawld.daemon.run", before=alone)
    assert {"structlog", "httpx"} <= modules
    assert not {"rich", "pygments", "click", "greenlet", "twisted", "brotli"} & modules
    # They can be imported afterwards.
    assert "rich.console" in modules_after("crawld.cli.console", before=alone)
