import shlex
import sys

from crawld.extras import install_command


def test_a_checkout_is_installed_from_itself(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    command = shlex.split(install_command("zim", tmp_path / "crawld"))
    assert command == [sys.executable, "-m", "pip", "install", "-e", f"{tmp_path}[zim]"]


def test_an_installed_package_is_installed_by_its_name(tmp_path):
    command = shlex.split(install_command("zim", tmp_path / "site packages" / "crawld"))
    assert command[-1] == "crawld[zim]"
