"""`get` of some objects only, of offsets and loggers, and in other forms."""

import json
from typing import Any

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead_tests.cli import answered

EXPANDED = "/connectors?expand=status&expand=info&expand=progress"
REASON = "waits for " + "space " * 12 + "on the disk"
OTHER_TASK = {"id": 0, "state": "RUNNING", "worker_id": answered.URL_2, "version": "1"}
LOGGERS = {
    "root": {"level": "INFO", "last_modified": None},
    "fairlead.actors": {"level": "DEBUG", "last_modified": 1_357_000_000_000},
}


def entry_of(name: str, **task: object) -> dict[str, Any]:
    status = {**answered.STATUS, "name": name, "tasks": [{**OTHER_TASK, **task}]}
    return {"status": status, "info": {**answered.INFO, "name": name}}


@pytest.fixture
def two(cluster: Cluster) -> Cluster:
    """A cluster with connectors a and b, each with one task."""
    cluster.answer("GET", EXPANDED, {"a": entry_of("a"), "b": entry_of("b", reason=REASON)})
    return cluster


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("connectors", "a b"),
        ("connector b", "b"),
        ("tasks", "a-0 b-0"),
        ("task a", "a-0"),
        ("workers w3 w1", "w1 w3"),
        ("groups", "connect"),
        ("plugins SparkPipeline", "SparkPipeline"),
        ("plugins --all", "SparkPipeline InsertField$Value"),
        ("assignors mine", "mine"),
        ("loggers root", "root"),
    ],
)
def test_names_are_one_in_each_line_of_all_or_of_those_that_are_asked_for(
    words: str, named: str, run: Run, two: Cluster
) -> None:
    two.answer("GET", "/admin/loggers", LOGGERS)
    told = run("get", *words.split(), "-o", "name", "--url", two.url)
    assert told == (0, "".join(f"{each}\n" for each in named.split()), "")


def test_a_list_of_some_is_the_same_in_each_format(run: Run, two: Cluster) -> None:
    told = run("get", "connectors", "a", "-o", "json", "--url", two.url)
    assert json.loads(told.out) == {"a": entry_of("a")}
    table = run("get", "connectors", "a", "--url", two.url)
    lines = [each.split()[:3] for each in table.out.splitlines()]
    assert lines == [["NAME", "TYPE", "STATE"], ["a", "source", "RUNNING"]]


def test_a_wide_list_cuts_nothing(run: Run, two: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert REASON not in run("get", "tasks", "b", "--url", two.url).out
    assert REASON in run("get", "tasks", "b", "-o", "wide", "--url", two.url).out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("connectors c", 1, "there is no connector c; there is: a, b"),
        ("tasks a c", 1, "there is no connector c; there is: a, b"),
        ("workers w9", 1, "there is no worker w9; there is: w1, w2, w3"),
        ("workers --all", 2, "--all and --types are of plugins"),
        ("offsets a", 1, "there is no /connectors/a/offsets (HTTP 404)"),
    ],
)
def test_a_name_that_there_is_not_fails(
    words: str, code: int, said: str, run: Run, two: Cluster
) -> None:
    assert run("get", *words.split(), "--url", two.url) == (code, "", f"fairlead: {said}\n")


def test_offsets_are_those_of_the_command_offsets(run: Run, cluster: Cluster) -> None:
    one = {"partition": {"path": "a.csv"}, "offset": {"size": 4}}
    cluster.answer("GET", "/connectors/flights/offsets", {"offsets": [one]})
    told = run("get", "offsets", "flights", "--url", cluster.url)
    assert told == run("offsets", "get", "flights", "--url", cluster.url)
    assert told.out == 'PARTITION          OFFSET\n{"path": "a.csv"}  {"size": 4}\n'


def test_offsets_of_several_connectors_are_told_apart(run: Run, cluster: Cluster) -> None:
    replies = {
        name: {"offsets": [{"partition": {"path": name}, "offset": {"size": 4}}]} for name in "ab"
    }
    for name, each in replies.items():
        cluster.answer("GET", f"/connectors/{name}/offsets", each)
    cluster.answer("GET", "/connectors", ["b", "a"])
    told = run("get", "offsets", "--url", cluster.url)
    assert told == run("get", "offsets", "a", "b", "--url", cluster.url)
    assert told == run("offsets", "get", "a", "b", "--url", cluster.url)
    assert told.out == (
        'Connector a\nPARTITION      OFFSET\n{"path": "a"}  {"size": 4}\n\n'
        'Connector b\nPARTITION      OFFSET\n{"path": "b"}  {"size": 4}\n'
    )
    lines = run("get", "offsets", "-o", "name", "--url", cluster.url).out.splitlines()
    assert lines == ['{"path": "a"}', '{"path": "b"}']
    found = json.loads(run("get", "offsets", "-o", "json", "--url", cluster.url).out)
    assert found == replies
    cluster.answer("GET", "/connectors", [])
    assert run("get", "offsets", "--url", cluster.url) == (0, "no connectors\n", "")


def test_loggers_are_listed_with_their_levels(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/admin/loggers", LOGGERS)
    assert run("get", "loggers", "--url", cluster.url).out == (
        "LOGGER           LEVEL  SET AT\n"
        "root             INFO\n"
        "fairlead.actors  DEBUG  2013-01-01T00:26:40.000Z\n"
    )
    assert cluster.asked == [Asked("GET", "/admin/loggers", None)]


def test_placements_are_those_that_operators_ordered_in_groups_of_workers(
    run: Run, cluster: Cluster
) -> None:
    assert run("get", "placements", "--url", cluster.url) == (
        0,
        "no placements: configs alone decide\n",
        "",
    )
    orders = [
        answered.resource("flights", weight=5, pins=[]),
        answered.resource("flights", 1, weight=1, pins=["w1", "w2"]),
    ]
    cluster.answer("GET", "/groups/connect", {**answered.GROUP, "placements": orders})
    assert run("get", "placements", "--url", cluster.url).out == (
        "GROUP    RESOURCE   WEIGHT  WORKERS\n"
        "connect  flights    5\n"
        "connect  flights-1  1       w1,w2\n"
    )
    told = run("get", "placement", "flights-1", "-o", "json", "--url", cluster.url)
    assert json.loads(told.out) == [{"group_id": "connect", **orders[1]}]


KINDS = {"workers", "plugins", "placements", "assignors"}
TOPIC = {**answered.KEYS[0], "name": "source.topic", "only_with": "source.type=kafka"}


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("get connectors ", "a b"),
        ("get w", "workers"),
        ("get p", "plugins placements"),
        ("get a", "assignors a"),
        ("get tasks f", "flights-0 flights-1"),
        ("restart task flights-1", "flights-1"),
        ("describe connector ", "a b"),
        ("describe group ", "connect"),
        ("describe plugin ", "SparkPipeline kafka"),
        ("get assignors b", "balanced"),
        ("patch flights tasks.", "tasks.max="),
        ("patch flights source.t", "source.topic="),
        ("patch flights -s tasks.", "tasks.max="),
        ("patch flights --remove tasks.", "tasks.max"),
        ("explain source.t", "source.topic"),
        ("plan --drain w3", "w3"),
        ("events --for a", "a"),
        ("wait w", "workers"),
        ("get loggers fairlead.a", "fairlead.actors"),
        ("log-level fairlead.a", "fairlead.actors"),
        ("delete connector a ", "a b"),
        ("patch connector ", "a b"),
        ("stop a b", "b"),
        ("pause connector ", "a b"),
        ("offsets seek ", "a b"),
        ("drain ", "w1 w2 w3"),
        ("remove worker w3", "w3"),
        ("history --group ", "connect"),
    ],
)
def test_a_shell_completes_names(
    line: str, completed: str, run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.answer("GET", "/connectors", ["a", "b"])
    cluster.answer("GET", "/connectors?expand=info", {"flights": {"info": answered.INFO}})
    cluster.answer("GET", "/admin/loggers", {"fairlead.actors": {}, "root": {}})
    cluster.answer("GET", "/connectors/flights/config", {**answered.CONFIG, "source.type": "kafka"})
    cluster.answer("GET", f"/connector-plugins/{answered.CLASS}/config", [*answered.KEYS, TOPIC])
    monkeypatch.setenv("FAIRLEAD_LISTENERS", cluster.url)
    monkeypatch.setenv("_FAIRLEAD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"fairlead {line}")
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ") + 1))
    told = run()
    assert told == (0, "".join(f"plain,{each}\n" for each in completed.split()), "")
    cluster.answers.clear()
    kinds = [each for each in told.out.splitlines() if each.removeprefix("plain,") in KINDS]
    assert run() == (0, "".join(f"{each}\n" for each in kinds or [""]), "")


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("explain data.", "data.dir"),
        ("up --set data.", "data.dir="),
        ("offsets seek a --to l", "latest"),
        ("auth can-i pau", "pause"),
    ],
)
def test_a_shell_completes_words_without_a_node(
    line: str, completed: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_FAIRLEAD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"fairlead {line}")
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ") + 1))
    assert run() == (0, f"plain,{completed}\n", "")


def test_in_a_narrow_terminal_headings_and_short_cells_stay_whole(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = run("get", "groups", "--url", cluster.url).out
    monkeypatch.setenv("COLUMNS", "60")
    narrow = run("get", "groups", "--url", cluster.url).out
    headings, cells = (line.split() for line in wide.splitlines()[:2])
    told = dict(line.split(":") for line in narrow.splitlines())
    assert [*told] == headings
    assert [each.strip() for each in told.values()] == cells
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("get", "connectors", "--url", cluster.url).out.splitlines()
    assert lines[0].split() == ["NAME", "TYPE", "STATE", "WORKER", "TASKS", "CLASS", "REASON"]
