"""The choice of some of many connectors: by labels, or all of them."""

from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead.runtime.interfaces.cli.output.printing import Misused
from fairlead.runtime.interfaces.cli.requests.selecting import parse_selector
from fairlead.runtime.pipeline.spi.keys.common import COMMON
from fairlead.runtime.pipeline.spi.keys.labels import LABELS, read_labels
from fairlead_tests.cli import answered

EXPANDED = "/connectors?expand=status&expand=info&expand=progress"
OF_CONNECTORS = {
    "ants": {"team": "a", "env": "prod"},
    "bees": {"team": "b", "env": "prod"},
    "cats": {"team": "a", "owner": ""},
    "dogs": dict[str, str](),
}


def entry(name: str, labels: dict[str, str]) -> dict[str, Any]:
    text = ",".join(f"{key}={value}" for key, value in labels.items())
    config = {**answered.CONFIG, "name": name, **({"labels": text} if labels else {})}
    status = {**answered.STATUS, "name": name}
    progress = {**answered.PROGRESS, "name": name}
    return {"status": status, "info": {**answered.INFO, "name": name, "config": config}} | {
        "progress": progress
    }


@pytest.fixture
def four(cluster: Cluster) -> Cluster:
    """A cluster with four connectors, of which three have labels."""
    entries = {name: entry(name, labels) for name, labels in OF_CONNECTORS.items()}
    cluster.answer("GET", EXPANDED, entries)
    cluster.answer("GET", "/connectors?expand=info", entries)
    cluster.answer("GET", "/connectors", [*entries])
    for name in OF_CONNECTORS:
        cluster.answer("PUT", f"/connectors/{name}/pause", None, 202)
        cluster.answer("DELETE", f"/connectors/{name}", None, 204)
        cluster.answer("GET", f"/connectors/{name}", entries[name]["info"])
        cluster.answer("GET", f"/connectors/{name}/status", entries[name]["status"])
        cluster.answer("GET", f"/connectors/{name}/progress", entries[name]["progress"])
    return cluster


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("team=a", "ants cats"),
        ("team==a", "ants cats"),
        ("team!=a", "bees dogs"),
        ("team=a,env=prod", "ants"),
        ("team in (a, b)", "ants bees cats"),
        ("env notin (prod)", "cats dogs"),
        ("env in (prod),team notin (b,c)", "ants"),
        ("team", "ants bees cats"),
        ("!team", "dogs"),
        ("!env , team = a", "cats"),
        ("owner=", "cats"),
        ("in in (x)", ""),
    ],
)
def test_a_selector_accepts_what_kubectl_s_does(selector: str, selected: str) -> None:
    requirements = parse_selector(selector)
    accepted = [
        name
        for name, labels in OF_CONNECTORS.items()
        if all(each.accepts(labels) for each in requirements)
    ]
    assert accepted == selected.split()


@pytest.mark.parametrize(
    "selector",
    ["", " ", "=a", "a=b,", ",a", "a=b c", "a in b", "a in (b", "!a=b", "a>1", "é=1", "a==b=c"],
)
def test_a_selector_that_is_none_is_a_misuse(selector: str) -> None:
    with pytest.raises(Misused):
        parse_selector(selector)


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ("team=a, env=prod", ""),
        ("owner=", ""),
        ("a/b.c=1-2", ""),
        ("team", "must be NAME=VALUE of letters, digits and . _ / -, not 'team'"),
        ("=a", "must be NAME=VALUE of letters, digits and . _ / -, not '=a'"),
        ("a=b c", "must be NAME=VALUE of letters, digits and . _ / -, not 'a=b c'"),
        ("a=1,b=2,a=3", "has a twice: a connector has a label once"),
    ],
)
def test_labels_of_a_config_are_checked(labels: str, error: str) -> None:
    checked = COMMON.check({"name": "x", "connector.class": "y", LABELS: labels})
    assert [*checked.errors.values()] == ([(error,)] if error else [])


def test_labels_are_read_as_leniently_as_they_may_have_been_stored() -> None:
    assert read_labels({LABELS: " team = a ,, env,=x"}) == {"team": "a", "env": ""}
    assert read_labels({}) == {}


def test_a_verb_is_for_the_connectors_with_the_labels(run: Run, four: Cluster) -> None:
    ended = run("pause", "connectors", "-l", "team=a", "--url", four.url)
    assert ended == (0, "connector ants pauses\nconnector cats pauses\n", "")
    nobody = run("pause", "-l", "team=z", "--url", four.url)
    assert nobody == (0, "", "fairlead: no connector has the labels team=z\n")
    assert run("pause", "--all", "--url", four.url).out.count("pauses") == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("pause ants -l team=a", "names are not chosen by --selector or --all as well"),
        ("pause --all -l team=a", "--all leaves nothing to a --selector"),
        ("pause", "say of what: `fairlead pause connector NAME`"),
        ("pause -l team=(a", "'team=(a' is no selector"),
        ("get workers -l team=a", "labels are of connectors and their tasks, not of workers"),
        ("get offsets --show-labels", "offsets have no columns of labels"),
        ("describe worker w1 --all", "are of connectors"),
        ("restart --all --task 0", "--task is the number of one task"),
        ("pause -f c.yaml --all", "files name connectors: leave out --reg-exp"),
        ("pause -e x -f c.yaml", "files name connectors: leave out --reg-exp"),
        ("get workers -f c.yaml", "files name connectors, not workers"),
        ("describe worker w1 -f c.yaml", "are of connectors, not of workers"),
    ],
)
def test_a_choice_that_makes_no_sense_is_a_misuse(
    words: str, said: str, run: Run, four: Cluster
) -> None:
    ended = run(*words.split(), "--url", four.url)
    assert (ended.code, said in ended.err, four.asked) == (2, True, [])


def test_keys_are_set_of_the_connectors_with_the_labels(run: Run, four: Cluster) -> None:
    four.answer("PATCH", "/connectors/bees/config", answered.INFO)
    ended = run("patch", "-l", "team=b", "tasks.max=3", "--url", four.url)
    assert ended == (0, "connector bees patched\n", "")
    patch = Asked("PATCH", "/connectors/bees/config", {"tasks.max": "3"})
    assert four.asked[-1] == patch
    assert run("scale", "-l", "team=b", "--tasks", "3", "--url", four.url).code == 0
    assert four.asked[-1] == patch


def test_delete_shows_first_what_it_would_delete(run: Run, four: Cluster) -> None:
    would = "connector ants would be deleted\nconnector cats would be deleted\n"
    assert run("delete", "-l", "team=a", "--dry-run", "--url", four.url) == (0, would, "")
    assert run("delete", "nobody", "--dry-run", "--url", four.url).code == 1
    assert {each.method for each in four.asked} == {"GET"}
    done = run("delete", "--all", "--url", four.url)
    assert (done.code, done.out.count(" deleted\n")) == (0, 4)


def test_a_connector_that_is_gone_may_be_no_failure(run: Run, four: Cluster) -> None:
    ended = run("delete", "nobody", "ants", "--ignore-not-found", "--url", four.url)
    assert ended == (0, "connector ants deleted\n", "")
    assert run("get", "connector", "nobody", "--url", four.url).code == 1
    quiet = run("get", "connector", "nobody", "--ignore-not-found", "--url", four.url)
    assert quiet == (0, "", "")
    words = ("get", "nobody", "ants", "-o", "name", "--ignore-not-found", "--url", four.url)
    assert run(*words) == (0, "ants\n", "")


def test_lists_are_of_the_connectors_with_the_labels(run: Run, four: Cluster) -> None:
    names = run("get", "connectors", "-l", "env=prod", "-o", "name", "--url", four.url)
    assert names == (0, "ants\nbees\n", "")
    tasks = run("get", "tasks", "-l", "team=b", "-o", "name", "--url", four.url)
    assert tasks == (0, "bees-0\nbees-1\n", "")
    none = run("get", "connectors", "-l", "env=x", "-o", "json", "--url", four.url)
    assert none == (0, "{}\n", "fairlead: no connector has the labels env=x\n")
    described = run("describe", "-l", "env=prod", "--url", four.url)
    assert described.out.count("Name:") == 2


def test_files_name_the_connectors_of_a_verb(run: Run, four: Cluster) -> None:
    Path("c.yaml").write_text("- name: cats\n- name: ants\n")
    Path("nobody.yaml").write_text("name: nobody")
    words = ("-f", "c.yaml", "--url", four.url)
    assert run("get", "-o", "name", *words) == (0, "ants\ncats\n", "")
    tasks = run("get", "tasks", "bees-0", "-o", "name", *words).out.split()
    assert tasks == ["ants-0", "ants-1", "bees-0", "cats-0", "cats-1"]
    assert run("describe", *words).out.count("Name:") == 2
    assert run("pause", "dogs", *words).out.count("pauses") == 3
    assert run("wait", "--for", "failed", *words).out.count("has failed") == 2
    for name in ("ants", "cats"):
        four.answer("PATCH", f"/connectors/{name}/config", answered.INFO)
    assert run("patch", "tasks.max=3", *words).out.count("patched") == 2
    absent = run("get", "-f", "nobody.yaml", "--url", four.url)
    assert absent.err.startswith("fairlead: there is no connector nobody; there is: ants")
    assert run("get", "-f", "nobody.yaml", "--ignore-not-found", "--url", four.url) == (0, "", "")


def test_labels_have_columns(run: Run, four: Cluster) -> None:
    columns = "custom-columns=N:.info.name"
    assert run("get", "-o", columns, "connectors", "--url", four.url).code == 0
    ended = run("get", "connectors", "-L", "team,env", "--show-labels", "--url", four.url)
    lines = [line.split() for line in ended.out.splitlines()]
    assert lines[0][-3:] == ["TEAM", "ENV", "LABELS"]
    assert lines[1][-3:] == ["a", "prod", "team=a,env=prod"]
    of_tasks = run("get", "tasks", "cats", "-L", "team", "--no-headers", "--url", four.url)
    assert [line.split()[-1] for line in of_tasks.out.splitlines()] == ["a", "a"]


def test_the_configs_of_tasks_are_shown_with_their_connector(run: Run, cluster: Cluster) -> None:
    tasks = [{"id": {"connector": "flights", "task": 0}, "config": {"range": "1-9"}}]
    cluster.answer("GET", "/connectors/flights/tasks", tasks)
    ended = run("describe", "flights", "--tasks-config", "--url", cluster.url)
    assert "\nConfig of flights-0\nrange:  1-9\n" in ended.out
    plain = run("describe", "connector", "flights", "-o", "json", "--url", cluster.url)
    assert "tasks_config" not in plain.out
