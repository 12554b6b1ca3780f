"""Contexts: clusters with names, what opens their doors, and which of them a verb is for."""

import json
from base64 import b64encode
from pathlib import Path

import pytest
from cli.conftest import Cluster, Run

from fairlead.runtime.interfaces.cli.main import load_verb

FILE = Path("settings/fairlead/contexts.yaml")
NAMES = ("get", "connectors", "-o", "name")
URL = "http://127.0.0.1:8083"
LOGGED = "2026-01-01 10:00:00,000 INFO 1 a: b\n"


def write_secret(path: str, text: str) -> Path:
    """Write a file for its owner only."""
    file = Path(path)
    file.touch(0o600)
    file.write_text(text)
    return file


def test_a_context_is_kept_for_its_owner_only_and_lists_tell_no_secret(run: Run) -> None:
    write_secret("token", "fl_secret\n")
    added = run("config", "set-context", "prod", "--url", URL, "--token-file", "token", "--use")
    assert added == (0, "context prod added; it is current\n", "")
    assert run("config", "set-context", "test", "--url", URL, "--user", "ann").code == 0
    assert FILE.stat().st_mode & 0o777 == 0o600
    assert run("config", "get-contexts").out == (
        "CURRENT  NAME  URL                    USER  DOOR\n"
        f"*        prod  {URL}        token\n"
        f"         test  {URL}  ann\n"
    )
    listed = json.loads(run("config", "get-contexts", "prod", "-o", "json").out)
    line = {"current": "*", "name": "prod", "url": URL, "user": "", "opens": "token"}
    assert listed == [line]
    assert "secret" not in FILE.read_text()


def test_what_is_not_said_of_a_context_stays_and_an_empty_text_removes_it(run: Run) -> None:
    run("config", "set-context", "prod", "--url", URL, "--ca", "ca.pem", "--user", "ann")
    changed = run("config", "set-context", "prod", "--ca", "", "--cert", "me.pem")
    assert changed == (0, "context prod changed\n", "")
    kept = f"contexts:\n  prod:\n    url: {URL}\n    cert: {Path('me.pem').absolute()}\n"
    assert FILE.read_text() == f"{kept}    user: ann\n"


def test_a_context_is_renamed_deleted_and_used(run: Run) -> None:
    for name in ("a", "b"):
        run("config", "set-context", name, "--url", URL)
    assert run("config", "current-context").code == 1
    assert run("config", "use-context", "a") == (0, f"context a is current: {URL}\n", "")
    assert run("config", "rename-context", "a", "c") == (0, "context a is c now\n", "")
    assert run("config", "current-context") == (0, "c\n", "")
    taken = "fairlead: there is a context b already: delete it first, or choose another name\n"
    assert run("config", "rename-context", "c", "b") == (2, "", taken)
    gone = "fairlead: it was the current one: now verbs are for the node of a data folder\n"
    assert run("config", "delete-context", "c") == (0, "context c deleted\n", gone)
    assert run("config", "remove-context", "c").code == 1
    assert FILE.read_text() == f"contexts:\n  b:\n    url: {URL}\n"


def test_the_command_line_comes_before_the_environment_and_that_before_the_current_context(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nobody = "http://127.0.0.1:9"
    run("config", "set-context", "here", "--url", cluster.url)
    run("config", "set-context", "away", "--url", nobody, "--use")
    assert run(*NAMES).code == 3
    assert run(*NAMES, "--context", "here") == (0, "flights\n", "")
    monkeypatch.setenv("FAIRLEAD_CONTEXT", "here")
    assert run(*NAMES).code == 0
    assert run("config", "current-context") == (0, "here\n", "fairlead: as FAIRLEAD_CONTEXT says\n")
    monkeypatch.setenv("FAIRLEAD_URL", nobody)
    assert "FAIRLEAD_URL" in run(*NAMES).err
    comes_first = f"fairlead: FAIRLEAD_URL comes first: verbs are for {nobody}\n"
    assert (
        run("config", "current-context").err == f"fairlead: as FAIRLEAD_CONTEXT says\n{comes_first}"
    )
    assert run(*NAMES, "--url", cluster.url).code == 0
    folder = tmp_path / "data" / "run"
    folder.mkdir(parents=True)
    (folder / "node.json").write_text(json.dumps({"rest": cluster.url}))
    assert run(*NAMES, "--data-dir", "data").code == 0, "a folder is named"
    both = run(*NAMES, "--url", cluster.url, "--context", "here")
    told = "fairlead: --url and --context both name a cluster: leave out one of them\n"
    assert both == (2, "", told)


def test_a_group_does_not_choose_the_node(run: Run, cluster: Cluster) -> None:
    run("config", "set-context", "here", "--url", cluster.url, "--use")
    assert run("status", "--group", "connect").code == 0


@pytest.mark.parametrize(
    ("options", "header"),
    [
        (["--token-file", "secret"], "Bearer pass word"),
        (
            ["--user", "ann", "--password-file", "secret"],
            f"Basic {b64encode(b'ann:pass word').decode()}",
        ),
        (["--user", "ann"], f"Basic {b64encode(b'ann:').decode()}"),
        ([], None),
    ],
)
def test_a_context_opens_the_door_of_its_cluster_alone(
    options: list[str], header: str | None, run: Run, cluster: Cluster
) -> None:
    write_secret("secret", "pass word\n")
    run("config", "set-context", "here", "--url", cluster.url, *options, "--use")
    assert run(*NAMES).code == 0
    assert run(*NAMES, "--url", cluster.url).code == 0
    assert cluster.authorizations == [header, None]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("contexts: [", "is no YAML: "),
        ("- 1", "holds no contexts: Expected `object`, got `array`"),
        ("contexts: {a: {url: 3}}", "holds no contexts: Expected `str`, got `int`"),
        ("contexts: {a: {urk: x}}", "holds no contexts: Object contains unknown field `urk`"),
        ("contexts: {a: {}}", "holds no contexts: the context a has no URL such as"),
        ("contexts: {/: {url: http://h}}", "holds no contexts: a context cannot be called '/'"),
        ("current: b\ncontexts: {}", "there is no context b (the current context)"),
        ("current: \x00", "is no YAML: unacceptable character"),
        ("[" * 3000, "is no YAML: maximum recursion depth exceeded"),
    ],
    ids=range(9),
)
def test_a_file_of_contexts_that_makes_no_sense_is_told_in_a_line(
    content: str, said: str, run: Run
) -> None:
    FILE.parent.mkdir(parents=True)
    FILE.write_text(content)
    ended = run(*NAMES)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert said in ended.err
    assert run(*NAMES, "--url", "http://127.0.0.1:9").code == 3, "it is not needed"


def test_a_token_that_others_may_read_is_not_used(run: Run, cluster: Cluster) -> None:
    Path("token").write_text("fl_secret")
    Path("token").chmod(0o644)
    run("config", "set-context", "here", "--url", cluster.url, "--token-file", "token", "--use")
    file = Path("token").absolute()
    told = f"fairlead: {file} has a secret, and others may read it: `chmod 600 {file}`, then again"
    assert run(*NAMES) == (1, "", f"{told}\n")
    FILE.write_text(f"current: here\ncontexts: {{here: {{url: '{cluster.url}', token: fl_x}}}}")
    FILE.chmod(0o640)
    assert "has a token, and others may read it" in run(*NAMES).err
    FILE.chmod(0o600)
    assert run(*NAMES).code == 0
    assert cluster.authorizations == ["Bearer fl_x"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is to hold one secret"), (b"a\nb", "is to hold one secret"), (b"\xff", "no text")],
)
def test_a_file_without_one_secret_is_told(content: bytes, said: str, run: Run) -> None:
    write_secret("token", "").write_bytes(content)
    run("config", "set-context", "here", "--url", URL, "--token-file", "token", "--use")
    ended = run(*NAMES)
    assert (ended.code, said in ended.err) == (1, True)


@pytest.mark.parametrize(
    "url", ["https://ann:secret@h", "http://h?token=secret", "ftp://h", "h:1", "http://h:x", ""]
)
def test_a_url_that_is_none_or_has_a_secret_is_not_kept(url: str, run: Run) -> None:
    ended = run("config", "set-context", "prod", "--url", url)
    assert (ended.code, ended.out, FILE.exists()) == (2, "", False)
    assert ended.err.count("\n") == 1


def test_a_folder_that_cannot_be_written_leaves_the_contexts_as_they_are(run: Run) -> None:
    FILE.parent.parent.write_text("no folder")
    ended = run("config", "set-context", "prod", "--url", URL)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.endswith("the contexts stay as before\n")


def test_a_shell_completes_the_names_of_contexts(run: Run) -> None:

    run("config", "set-context", "prod", "--url", URL)
    context = load_verb("get").make_context("get", ["connectors"], resilient_parsing=True)
    (parameter,) = (each for each in context.command.params if each.name == "context")
    assert [each.value for each in parameter.shell_complete(context, "p")] == ["prod"]


def test_config_without_a_command_shows_the_settings(run: Run) -> None:
    assert run("config").out.startswith("KEY")
    ended = run("config", "get-context")
    assert (ended.code, "Did you mean 'get-contexts'?" in ended.err) == (2, True)


def test_logs_are_those_of_the_context_unless_a_folder_is_named(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    run("config", "set-context", "prod", "--url", cluster.url, "--use")
    for folder in ("fairlead-data", "data"):
        (tmp_path / folder / "logs").mkdir(parents=True)
        (tmp_path / folder / "logs" / "rest.log").write_text(LOGGED)
    entries = [{"file": "rest.log", "text": "far away\n  and more"}]
    page = {"entries": entries, "is_cut": True, "next": "1.2"}
    cluster.answer("GET", "/logs?tail=10000", page)
    cluster.answer("GET", "/logs?about=flights-0&level=WARN&tail=5&since_ms=60000", page)
    aside = "fairlead: older lines are left out: they are in the files of the node, in logs/\n"
    assert run("logs") == (0, "far away\n  and more\n", aside)
    options = ("--level", "warn", "--tail", "5", "--since", "1m", "--prefix")
    lines = "[rest.log] far away\n[rest.log]   and more\n"
    assert run("logs", "task", "flights-0", *options) == (0, lines, "")
    assert run("logs", "--data-dir", "data") == (0, LOGGED, "")
