"""`apply --prune`: connectors that no file has are deleted, and named first."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead_tests.cli import answered

FILE = "- {name: a, labels: 'team=x'}\n- {name: b, labels: 'team=y'}"


@pytest.fixture
def four(cluster: Cluster) -> Cluster:
    """A cluster that has a, b, c and d, of which a and c are team x's."""
    Path("c.yaml").write_text(FILE)
    labels = {"a": "team=x", "b": "team=y", "c": "team=x", "d": "team=y"}
    cluster.answer(
        "GET",
        "/connectors?expand=info",
        {
            name: {"info": {**answered.INFO, "name": name, "config": {"labels": each}}}
            for name, each in labels.items()
        },
    )
    for name in labels:
        cluster.answer("DELETE", f"/connectors/{name}", None, 204)
    return cluster


def answer_apply(cluster: Cluster, *names: str) -> None:
    changes = [{"name": name, "is_new": False, "changes": [], "warnings": []} for name in names]
    cluster.answer("POST", "/apply", changes)


def deleted(cluster: Cluster) -> list[str]:
    return [each.path for each in cluster.asked if each.method == "DELETE"]


def test_all_that_no_file_has_is_deleted_once_the_files_are_applied(
    run: Run, four: Cluster
) -> None:
    answer_apply(four, "a", "b")
    ended = run("apply", "-f", "c.yaml", "--prune", "--all", "--yes", "--url", four.url)
    lines = ["connector a unchanged", "connector b unchanged"]
    lines += ["connector c deleted", "connector d deleted"]
    assert (ended.code, ended.out.splitlines(), ended.err) == (0, lines, "")
    assert [each.method for each in four.asked] == ["GET", "POST", "DELETE", "DELETE"]


def test_a_selector_bounds_what_is_applied_and_what_is_deleted(run: Run, four: Cluster) -> None:
    answer_apply(four, "a")
    words = ("apply", "-f", "c.yaml", "--prune", "-l", "team=x", "-y", "--url", four.url)
    ended = run(*words)
    left_out = "fairlead: without these labels, and left out: b\n"
    assert ended == (0, "connector a unchanged\nconnector c deleted\n", left_out)
    config: dict[str, Any] = {"name": "a", "labels": "team=x"}
    body = {"connectors": [{"name": "a", "config": config}], "dry_run": False}
    assert Asked("POST", "/apply", body) in four.asked
    assert deleted(four) == ["/connectors/c"]


def test_nothing_is_deleted_that_nobody_has_agreed_to(
    run: Run, four: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("apply", "-f", "c.yaml", "--prune", "--all", "--url", four.url)
    told = "fairlead: no file has c, d: --prune --yes deletes them; nothing was changed\n"
    assert run(*words) == (2, "", told)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: False)
    assert run(*words) == (1, "", "fairlead: nothing was changed\n")
    assert {each.method for each in four.asked} == {"GET"}
    monkeypatch.setattr("click.confirm", lambda *_, **__: True)
    answer_apply(four, "a", "b")
    assert run(*words).code == 0
    assert deleted(four) == ["/connectors/c", "/connectors/d"]


def test_a_dry_run_says_what_would_be_deleted(run: Run, four: Cluster) -> None:
    answer_apply(four, "a", "b")
    words = ("apply", "-f", "c.yaml", "--prune", "--all", "--dry-run", "--url", four.url)
    assert run(*words).out.splitlines()[2:] == [
        "connector c would be deleted",
        "connector d would be deleted",
    ]
    told = run(*words, "-o", "json")
    assert [each["name"] for each in json.loads(told.out)["connectors"]] == ["a", "b"]
    assert json.loads(told.out)["deleted"] == ["c", "d"]
    assert deleted(four) == []


def test_what_is_refused_deletes_nothing(run: Run, four: Cluster) -> None:
    four.answer("POST", "/apply", {"error_code": 400, "message": "no"}, 400)
    ended = run("apply", "-f", "c.yaml", "--prune", "--all", "-y", "--url", four.url)
    assert (ended.code, deleted(four)) == (1, [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--prune"], "--prune deletes what no file has of --selector LABELS, or of --all"),
        (["--prune", "--all", "-l", "a=b"], "--prune deletes what no file has"),
        (["--all"], "--all is of --prune"),
    ],
)
def test_what_is_pruned_is_said(options: list[str], said: str, run: Run, four: Cluster) -> None:
    ended = run("apply", "-f", "c.yaml", *options, "--url", four.url)
    assert (ended.code, said in ended.err, four.asked) == (2, True, [])
