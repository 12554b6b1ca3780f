"""`fairlead auth`: who may use a node is kept in its data folder, and no secret is shown twice."""

import io
import json
import os
import re
from base64 import b64encode
from pathlib import Path

import pytest
from cli.conftest import Cluster, Run

from fairlead.runtime.interfaces.cli.catalogue import VERBS
from fairlead.runtime.interfaces.cli.main import load_verb
from fairlead.runtime.interfaces.cli.verbs.auth import RIGHT_OF
from fairlead.runtime.security.followed_files import FileRefused
from fairlead.runtime.security.proofs.entries import (
    EntryKind,
    follow_entries,
    read_entries,
)
from fairlead.runtime.security.proofs.passwords import find_token

FILE = Path("fairlead-data/run/access.json")
CALLER = {
    "name": "ann",
    "authentication": "token",
    "address": "127.0.0.1",
    "grants": [{"rights": ["view", "operate"], "connectors": ["orders-*"]}],
    "node": [],
    "connector": ["view", "operate"],
}


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("correct horse\n"))


def test_a_token_is_printed_once_and_kept_as_its_digest(run: Run) -> None:
    added = run("auth", "token", "add", "ci", "--role", "operator", "--owner", "ann")
    token = added.out.strip()
    assert re.fullmatch(r"fl_[\w-]{43}", token)
    assert added.err == (
        "fairlead: token ci is operator of all connectors from now on\n"
        "fairlead: rest.authentication is none here: with token among its words the node asks for"
        " it\n"
    )
    assert token not in FILE.read_text()
    entry = find_token(read_entries(FILE), token)
    assert entry is not None
    assert (entry.name, entry.label, FILE.stat().st_mode & 0o777) == (
        "ci",
        "ann (token ci)",
        0o600,
    )


@pytest.mark.usefixtures("password")
def test_users_and_tokens_are_listed_without_their_secrets_and_revoked(run: Run) -> None:
    run("auth", "token", "add", "ci", "--role", "viewer", "--owner", "", "--connectors", "a, b*")
    run("auth", "user", "add", "ann", "--role", "admin")
    assert run("auth", "list").out == (
        "NAME  KIND   ROLE    CONNECTORS  OWNER  EXPIRES\n"
        "ci    token  viewer  a,b*\n"
        "ann   user   admin\n"
    )
    (_, ann) = json.loads(run("auth", "list", "-o", "json").out)
    assert {*ann} == {"name", "kind", "role", "connectors", "owner", "created_ms", "expires_ms"}
    assert run("auth", "revoke", "ann", "bob") == (
        1,
        "",
        "fairlead: there is no bob: nothing was revoked; there is: ci, ann\n",
    )
    assert run("auth", "revoke", "ann", "ci") == (0, "revoked: ann, ci\n", "")
    assert run("auth", "list").out == (
        "no users, tokens or certificates: `fairlead auth user add NAME --role admin`\n"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("user add a:b --role admin", "a name has letters, digits and . _ @ + - only"),
        ("user add ann --role admin --expires soon", "'soon' is no time, or too long a one"),
        ("user add ann --role admin --connectors a,,b", "'' is no pattern of connector names"),
        ("user add ann --role root", "Invalid value for '--role'"),
        ("user add ann", "Missing option '--role'"),
        ("user add ann secret --role admin", "Got unexpected extra argument (secret)"),
        ("can-i fly", "'fly' is none of view, operate, administer"),
    ],
)
def test_what_cannot_be_added_is_refused_before_anything_is_written(
    run: Run, words: str, why: str
) -> None:
    refused = run("auth", *words.split())
    assert (refused.code, why in refused.err, FILE.exists()) == (2, True, False)


def test_a_short_password_and_a_name_that_is_taken_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert run("auth", "user", "add", "ann", "--role", "admin").err == (
        "fairlead: a password has at least 8 characters, and at most 1024 bytes: nothing was"
        " added\n"
    )
    run("auth", "certificate", "add", "CN=ann", "--role", "viewer")
    assert run("auth", "certificate", "add", "CN=ann", "--role", "admin").err == (
        "fairlead: there is a certificate CN=ann already, which stays as it is: --replace replaces"
        " it, and with `fairlead auth revoke` it ends\n"
    )
    assert run("auth", "certificate", "add", "CN=ann", "--role", "admin", "--replace").code == 0
    assert read_entries(FILE).by_name["CN=ann"].role == "admin"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "Input data was truncated"),
        (b"{", "Input data was truncated"),
        (b"[" * 200_000, "Expected `object`, got `array`"),
        (b"\xff\xfe", "is not UTF-8"),
        (b'{"version":2,"entries":[]}', "its version is 2, this release knows 1"),
        (b'{"version":1,"entries":[{"name":"a","kind":"user","role":"root"}]}', "Invalid enum"),
        (
            b'{"version":1,"entries":[{"name":"a","kind":"user","role":"admin","secret":"x"}]}',
            "entry 0: its secret is not that of a user",
        ),
        (
            b'{"version":1,"entries":[{"name":"a","kind":"certificate","role":"admin"},'
            b'{"name":"a","kind":"certificate","role":"admin"}]}',
            "two entries have the same name",
        ),
    ],
    ids=range(8),
)
def test_a_damaged_file_keeps_what_counted_before_and_is_told_once(
    run: Run, caplog: pytest.LogCaptureFixture, content: bytes, why: str
) -> None:
    run("auth", "certificate", "add", "CN=ann", "--role", "viewer")
    file = follow_entries(Path("fairlead-data"))
    assert file.current().find(EntryKind.CERTIFICATE, "CN=ann")
    FILE.write_bytes(content)
    assert [[*file.current().by_name] for _ in range(3)] == [["CN=ann"]] * 3
    warnings = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert (len(warnings), why in warnings[0], "stays in force" in warnings[0]) == (1, True, True)
    refused = run("auth", "certificate", "add", "CN=bob", "--role", "viewer")
    assert (refused.code, FILE.read_bytes()) == (1, content)
    assert [*follow_entries(Path("fairlead-data")).current().by_name] == []


def test_a_file_that_others_may_read_is_refused_by_name(run: Run) -> None:
    run("auth", "certificate", "add", "CN=ann", "--role", "viewer")
    FILE.chmod(0o644)
    assert run("auth", "list").err == (
        f"fairlead: other users may read or change {FILE.absolute()} (mode 644): chmod 600"
        f" {FILE.absolute()}\n"
    )
    FILE.unlink()
    os.symlink("/etc/passwd", FILE)  # noqa: PTH211
    with pytest.raises(FileRefused, match="other users may read"):
        read_entries(FILE)


def test_who_one_is_and_what_one_may_do_are_asked_of_the_cluster(
    run: Run, cluster: Cluster
) -> None:
    for query in ("", "?connector=orders-a"):
        cluster.answer("GET", f"/whoami{query}", CALLER)
    assert run("auth", "whoami", "--url", cluster.url).out == (
        "Name:  ann\nBy:    token\nMay:   view, operate connectors orders-*\n"
    )
    assert run("auth", "can-i", "pause", "orders-a", "--url", cluster.url).out == "yes\n"
    assert run("auth", "can-i", "delete", "orders-a", "--url", cluster.url) == (1, "no\n", "")
    assert run("auth", "can-i", "drain", "--url", cluster.url) == (1, "no\n", "")
    for words in ("connector orders-a", "connector/orders-a", "task orders-a-0"):
        assert run("auth", "can-i", "stop", *words.split(), "--url", cluster.url).out == "yes\n"
    for words in ("drain w1", "stop worker w1"):
        assert run("auth", "can-i", *words.split(), "--url", cluster.url) == (1, "no\n", "")


def test_a_shell_completes_what_may_be_revoked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("auth", "token", "add", "ci", "--role", "viewer")
    monkeypatch.setenv("_FAIRLEAD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "fairlead auth revoke c")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert run() == (0, "plain,ci\n", "")


def test_one_may_ask_of_each_verb_that_asks_a_cluster() -> None:
    asking = {name for name in VERBS if any(it.name == "url" for it in load_verb(name).params)}
    assert {*RIGHT_OF} - {"view", "operate", "administer"} == asking | {
        "offsets",
        "owner",
        "rollout",
    }


def test_the_environment_says_who_one_is(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = Path("secret")
    secret.touch(0o600)
    secret.write_text("fl_secret\n")
    pair = b64encode(b"ann:fl_secret").decode()
    for variables, header in (
        ({"FAIRLEAD_TOKEN": "fl_own"}, "Bearer fl_own"),
        ({"FAIRLEAD_TOKEN_FILE": "secret"}, "Bearer fl_secret"),
        ({"FAIRLEAD_USER": "ann", "FAIRLEAD_PASSWORD_FILE": "secret"}, f"Basic {pair}"),
    ):
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            assert run("get", "connectors", "--url", cluster.url).code == 0
        assert cluster.authorizations[-1] == header


def test_a_refusal_is_told_with_what_to_do(run: Run, cluster: Cluster) -> None:
    for status, message, hint in (
        (
            401,
            "this interface asks who you are; nothing was done",
            "put a token into FAIRLEAD_TOKEN_FILE, or a user into FAIRLEAD_USER and the path of a"
            " file with the password into FAIRLEAD_PASSWORD_FILE: `fairlead auth` makes them, on"
            " the machine of the node",
        ),
        (403, "ann lacks it; nothing was done", "`fairlead auth whoami` shows what you may do"),
    ):
        cluster.answers["GET", "/whoami"] = status, {"error_code": status, "message": message}
        assert run("auth", "whoami", "--url", cluster.url).err == (
            f"fairlead: {message}; {hint} (HTTP {status})\n"
        )
