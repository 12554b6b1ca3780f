"""The command `doctor`: a table with a verdict, JSON for programs, exit code 1 if a node fails."""

import json
import socket

import pytest
from cli.conftest import Run

NOOP = ("--set", "engine=noop", "--set", "listeners=http://127.0.0.1:0")


def test_a_machine_that_will_do_ends_well(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ended = run("doctor", *NOOP)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0].split() == ["LEVEL", "CHECK", "FINDING", "COMMAND"]
    assert ended.out.splitlines()[-1].startswith("a node runs here")


def test_a_port_that_is_taken_fails_and_names_the_program(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        words = "--set", f"listeners=http://127.0.0.1:{port}", "--set", "engine=noop"
        ended = run("doctor", *words, "-o", "json")
        table = run("doctor", *words)
    assert (ended.code, table.code) == (1, 1)
    (wrong,) = (each for each in json.loads(ended.out) if each["level"] == "fail")
    assert (wrong["check"], wrong["mend"]) == ("ports", f"ss -ltnp 'sport = :{port}'")
    assert wrong["text"].startswith(f"listeners: port {port} of 127.0.0.1 is taken by ")
    assert table.out.splitlines()[-1] == "a node would not run here: 1 to mend first"


def test_wrong_settings_are_findings_beside_the_others(run: Run) -> None:
    ended = run("doctor", "--set", "listeners=x", "--set", "workers=many", "-o", "json")
    findings = json.loads(ended.out)
    assert (ended.code, ended.err) == (1, "")
    assert [each["check"] for each in findings[:3]] == ["settings", "settings", "python"]


def test_a_secret_of_the_settings_is_never_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_SPARK_MASTER", "sc://host:1/;token=hunter2")
    ended = run("doctor", *NOOP, "--set", "spark.conf.spark.x.password=hunter2", "-o", "json")
    assert "hunter2" not in ended.out + ended.err
