"""What a start imports, and how."""

import gc
import subprocess
import sys

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


def modules_after(names):
    code = f"import {names}, sys; print(*sys.modules)"
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
