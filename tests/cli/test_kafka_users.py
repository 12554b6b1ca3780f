"""`fairlead kafka-user` writes keys for passwords that no argument and no output has."""

import io
import json
from pathlib import Path

import pytest
from cli.conftest import Run

from fairlead.runtime.security.kafka.scram import derive_keys
from fairlead.runtime.security.kafka.users import load_users

FILE = Path("fairlead-data/kafka-users.json")
PASSWORD = "open sesame"


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Give the next command this standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_user_is_added_with_keys_for_both_mechanisms_and_removed(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, f"{PASSWORD}\n")
    assert run("kafka-user", "add", "ann") == (0, "ann may log in with this password\n", "")
    keys = load_users(FILE)["ann"]
    assert sorted(keys) == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    for mechanism, each in keys.items():
        assert each == derive_keys(mechanism, PASSWORD, each.salt, each.iterations)
    assert FILE.stat().st_mode & 0o777 == 0o600
    listed = json.loads(run("kafka-user", "list", "-o", "json").out)
    assert listed == [{"name": "ann", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}]
    assert run("kafka-user", "remove", "ann") == (0, "ann may not log in any more\n", "")
    assert load_users(FILE) == {}
    assert run("kafka-user", "remove", "ann").code == 1


def test_a_password_is_read_from_a_file_that_others_may_not_read(run: Run) -> None:
    Path("password").touch(0o600)
    Path("password").write_text(f"{PASSWORD}\n")
    words = ("kafka-user", "add", "ann", "--password-file", "password")
    assert run(*words, "--set", "kafka.sasl.users=elsewhere/users").code == 0
    assert [*load_users(Path("elsewhere/users"))] == ["ann"]
    Path("password").chmod(0o644)
    ended = run(*words)
    assert (ended.code, ended.out) == (2, "")
    assert "password (mode 644): chmod 600 password; nothing was changed" in ended.err


@pytest.mark.parametrize(
    ("name", "password", "flaw"),
    [
        ("ann", "short", "a password has at least 8 characters"),
        ("", PASSWORD, "a name has 1 to 255 printable characters"),
        (" ann", PASSWORD, "a name has 1 to 255 printable characters"),
        ("a\nb", PASSWORD, "a name has 1 to 255 printable characters"),
    ],
)
def test_a_user_who_could_not_log_in_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str, password: str, flaw: str
) -> None:
    typed(monkeypatch, password)
    ended = run("kafka-user", "add", name)
    assert (ended.code, ended.out) == (2, "")
    assert flaw in ended.err
    assert not FILE.exists()


def test_a_broken_file_stays_as_it_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    FILE.parent.mkdir()
    FILE.touch(0o600)
    FILE.write_text("{")
    typed(monkeypatch, PASSWORD)
    ended = run("kafka-user", "add", "ann")
    assert (ended.code, FILE.read_text()) == (1, "{")
    assert "kafka-users.json: " in ended.err
