"""`crawld check-config`."""

import json

from crawld.cli.check_config import check_config

GOOD = """\
[daemon]
contact = "you@example.org"
[[site]]
name = "docs"
seeds = ["https://docs.example.org/"]
host_delay_s = 7.0
"""


def test_summary_for_people_and_programs(tmp_path, capsys):
    path = tmp_path / "c.toml"
    path.write_text(GOOD)
    assert check_config(path) == 0
    shown = capsys.readouterr().out
    assert "docs: 1 seed on docs.example.org, 7 s apart" in shown
    assert "(+you@example.org)" in shown
    assert check_config(path, as_json=True) == 0
    parsed = json.loads(capsys.readouterr().out)
    assert parsed["valid"] is True
    assert parsed["sites"][0]["hosts"] == ["docs.example.org"]
    assert parsed["sites"][0]["host_delay_s"] == 7.0


def test_the_summary_names_notifications(tmp_path, capsys):
    path = tmp_path / "c.toml"
    hook = 'webhook = "https://hooks.example.org/secret"\nsites = ["docs"]\nwhen = "daily"\n'
    path.write_text(f'{GOOD}[[notify]]\nname = "team"\n{hook}')
    assert check_config(path) == 0
    shown = capsys.readouterr().out
    rule = (
        "notify      team: webhook on hooks.example.org, changed, moved, gone, back pages of docs"
    )
    assert f"{rule}, daily" in shown
    assert check_config(path, as_json=True) == 0
    parsed = json.loads(capsys.readouterr().out)
    assert parsed["notify"] == [{"name": "team", "receiver": "webhook on hooks.example.org"}]


def test_an_invalid_config_ends_with_2(tmp_path, capsys):
    path = tmp_path / "c.toml"
    path.write_text(GOOD + "max_dept = 1\n")
    assert check_config(path) == 2
    shown = capsys.readouterr()
    assert "line 7: unknown key" in shown.err
    assert "max_depth?" in shown.err
    assert shown.out == ""
    assert check_config(path, as_json=True) == 2
    parsed = json.loads(capsys.readouterr().out)
    assert parsed["valid"] is False
    assert "line 7" in parsed["errors"][0]
