"""Rules of notification in the config: what is accepted, and each mistake with its line."""

import sys

import pytest

from crawld.config.derive import rule_filter
from crawld.config.load import load
from crawld.config.reload import runtime_changes
from tests.unit.config.conftest import refusal

SITE = '[daemon]\ncontact = "a@b.org"\n[[site]]\nname = "docs"\nseeds = ["https://a.example/"]\n'
HOOK = '[[notify]]\nname = "team"\nwebhook = "https://hooks.example.org/x?token=1"\n'
SECRET = "correct-horse-battery"


def test_a_rule_has_defaults(write):
    loaded = load(write(SITE + HOOK))
    [rule] = loaded.config.notify
    assert loaded.warnings == ()
    assert rule.kinds == ("changed", "moved", "gone", "back")
    assert (rule.when, rule.give_up_s, rule.merge_above) == ("at once", 259_200.0, 20)


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        ('[[notify]]\nname = "team"\n', 6, ["needs one of webhook, webhook_file, mail_to"]),
        (HOOK + 'mail_to = ["a@b.org"]\n', 6, ["not both webhook and mail_to"]),
        (HOOK + "kind = ['new']\n", 9, ['notify "team"', "did you mean kinds?"]),
        (HOOK + 'kinds = ["edited"]\n', 9, ["kinds[0]", "'changed'"]),
        (HOOK + "kinds = []\n", 6, ["kinds is empty"]),
        (HOOK + 'matches = "(a"\n', 9, ["matches", "does not compile", "missing )"]),
        (HOOK + 'matches = "(?=a)"\n', 9, ["no look-around"]),
        (HOOK + 'matches = ""\n', 9, ["is empty"]),
        (HOOK + 'include = ["/a"]\n', 9, ['"prefix:..."']),
        (HOOK + 'when = "weekly"\n', 9, ["'daily'"]),
        (HOOK + 'daily_at = "24:00"\n', 9, ['"HH:MM"']),
        (HOOK + 'timezone = "Mars/One"\n', 9, ["time zone"]),
        (HOOK + "min_changed_share = 2\n", 9, ["at most 1"]),
        (HOOK + 'sites = ["a b"]\n', 9, ["letters, digits"]),
        (HOOK + HOOK, 10, ["two notifications are named 'team'"]),
        ('[[notify]]\nname = "a"\nwebhook = "ftp://a.example/"\n', 8, ["http(s) URL"]),
        ('[[notify]]\nname = "a"\nmail_to = ["Me <a@b.org>"]\n', 8, ["mail address"]),
        ('[[notify]]\nname = "a"\nmail_to = ["mailto:a@b.org"]\n', 8, ["mail address"]),
        ('[[notify]]\nname = "a"\nmail_to = ["a@b.org"]\n', 8, ["a mail server in [mail]"]),
        ('[mail]\nhost = "m.example"\n', 6, ["needs sender"]),
        ('[mail]\nhost = "m.example"\nsender = "a@b.org"\nuser = "u"\n', 6, ["need each other"]),
        ('[notify]\nname = "team"\n', 6, ["[[notify]] blocks, with two brackets"]),
        ('[web]\npublic_url = "https://a.example/?a"\n', 7, ["no query"]),
        (HOOK.replace("hooks", "u:pw@hooks"), 8, ["user name or password"]),
    ],
)
def test_mistakes_name_their_line(write, text, line, parts):
    message = refusal(write(SITE + text))
    assert f"line {line}:" in message
    for part in parts:
        assert part in message


def test_a_password_in_a_url_is_not_shown(write):
    assert "pw" not in refusal(write(SITE + HOOK.replace("hooks", "u:pw@hooks"))).split("\n")[0]


@pytest.mark.parametrize(
    ("key", "content", "part"),
    [
        ("webhook_file", f"{SECRET}\n", "no http(s) URL"),
        ("webhook_file", f"https://u:{SECRET}@a.example/\n", "no http(s) URL"),
        ("webhook_file", f"https://a.example/{SECRET}\n{SECRET}\n", "has 2 lines"),
        ("secret_file", "# nothing\n", "has 0 lines"),
        ("headers_file", f"Authorization {SECRET}\n", "line 1"),
        ("apprise_file", f"foo://{SECRET}\n", "no URL that Apprise knows"),
    ],
)
def test_mistakes_in_files_of_secrets_are_named_without_them(write, key, content, part):
    write(content, "secret")
    target = "" if key in ("webhook_file", "apprise_file") else HOOK.splitlines()[2] + "\n"
    message = refusal(write(f'{SITE}[[notify]]\nname = "t"\n{target}{key} = "secret"\n'))
    assert part in message
    assert f"line {8 + bool(target)}:" in message
    assert SECRET not in message


def test_a_missing_file_is_named(write):
    text = f'{SITE}{HOOK}secret_file = "nowhere"\n'
    assert "secret_file: cannot read" in refusal(write(text))


def test_a_file_that_others_can_read_gives_a_warning(write):
    write(f"https://a.example/{SECRET}\n", "secret", mode=0o644)
    rule = '[[notify]]\nname = "t"\nwebhook_file = "secret"\n'
    [warning] = load(write(SITE + rule)).warnings
    assert "chmod 600" in warning
    assert "line 8:" in warning


def test_a_missing_extra_is_told_with_its_command(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "apprise", None)
    write("json://127.0.0.1/\n", "secret")
    message = refusal(write(SITE + '[[notify]]\nname = "t"\napprise_file = "secret"\n'))
    assert "needs Apprise, which is not installed" in message
    assert "pip install -e" in message
    assert "[notify]" in message


def test_secrets_are_not_sent_unencrypted(write):
    write(f"Authorization: Bearer {SECRET}\n", "headers")
    hook = HOOK.replace("https:", "http:") + 'headers_file = "headers"\n'
    assert "unencrypted" in refusal(write(SITE + hook))
    load(write(SITE + hook.replace("hooks.example.org", "127.0.0.1:8080")))
    write(f"{SECRET}\n", "password")
    mail = (
        '[mail]\nhost = "m.example"\nsender = "a@b.org"\nuser = "u"\npassword_file = "password"\n'
    )
    message = refusal(write(f'{SITE}{mail}security = "none"\n'))
    assert "unencrypted" in message
    assert SECRET not in message
    load(write(SITE + mail))


def test_an_unknown_site_gives_a_warning(write):
    [warning] = load(write(f'{SITE}{HOOK}sites = ["dosc"]\n')).warnings
    assert 'there is no site "dosc"; did you mean docs?' in warning


def test_a_reload_applies_rules(write):
    old = load(write(SITE + HOOK)).config
    new = load(write(SITE + HOOK + "merge_above = 5\n" + HOOK.replace("team", "b"))).config
    assert runtime_changes(old, new) == ["notify.b", "notify.team.merge_above"]
    assert runtime_changes(new, load(write(SITE)).config) == ["notify.b", "notify.team"]


def test_the_filter_of_a_rule(write):
    more = 'sites = ["docs"]\nexclude = ["prefix:/tmp/"]\nmin_changed_share = 0.1\n'
    [rule] = load(write(SITE + HOOK + more + "matches = 'CVE-\\d+'\n")).config.notify
    wanted = rule_filter(rule)
    assert wanted.may_want("changed", "docs", "https://a.example/b", 0.2)
    assert not wanted.may_want("changed", "docs", "https://a.example/tmp/b", 0.2)
    assert not wanted.may_want("changed", "other", "https://a.example/b", 0.2)
    assert not wanted.may_want("changed", "docs", "https://a.example/b", 0.05)
    assert not wanted.may_want("new", "docs", "https://a.example/b", None)
    assert wanted.may_want("gone", "docs", "https://a.example/b", None)
    assert wanted.needs_text
    assert wanted.wants("gone", "About CVE-7", None)
    assert not wanted.wants("gone", "About", None)
