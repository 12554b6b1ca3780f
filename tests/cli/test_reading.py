"""`status`, `get` and `describe` against a server that answers as a cluster does."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.conftest import FOLDER, Asked, Cluster, Run
from msgspec import convert

from fairlead.runtime.interfaces.cli.output.printing import Table
from fairlead.runtime.interfaces.cli.tables.connectors import tabulate_config_warnings
from fairlead.runtime.interfaces.replies.connectors import ExpandedConnector
from fairlead_tests.cli import answered

STATUS = """\
Cluster:  {url}
Version:  0.1.0
Health:   degraded
Detail:   group connect takes commands; of its connectors, tasks and workers: 1 FAILED, 1 worker
          processes down
Tasks:    1 FAILED, 1 RUNNING

GROUP    TYPE     STATE   EPOCH  ASSIGNMENT  MEMBERS  CONNECTORS  ASSIGNED
connect  connect  Stable  4      4           2        1           3/3

NAME  PROCESS      MEMBER           EPOCH  CONNECTORS  TASKS  PID   RESTARTS
w1    running      STABLE           4      1           1      4711  0
w2                 STABLE,cordoned  4      0           1
w3    backing-off                                                   3

Troubles
TROUBLE    REASON
worker w3  killed

NAME     TYPE    STATE    WORKER  TASKS  CLASS          REASON
flights  source  RUNNING  w1      1/2    SparkPipeline

TASK       STATE    WORKER  ROWS  BATCHES  LAG     LAST COMMIT  REASON
flights-0  RUNNING  w1      840   8        1.2 MB  5m ago
flights-1  FAILED   w2      0     0                             no such column: carrier
"""
EXPANDED = "/connectors?expand=status&expand=info&expand=progress"
LISTED = {
    "connectors": """\
NAME     TYPE    STATE    WORKER  TASKS  CLASS          REASON
flights  source  RUNNING  w1      1/2    SparkPipeline
""",
    "tasks": """\
TASK       STATE    WORKER  ROWS  BATCHES  LAG     LAST COMMIT  REASON
flights-0  RUNNING  w1      840   8        1.2 MB  5m ago
flights-1  FAILED   w2      0     0                             no such column: carrier
""",
    "workers": """\
NAME  PROCESS      MEMBER           EPOCH  CONNECTORS  TASKS  PID   RESTARTS
w1    running      STABLE           4      1           1      4711  0
w2                 STABLE,cordoned  4      0           1
w3    backing-off                                                   3
""",
    "groups": """\
GROUP    TYPE     STATE   EPOCH  ASSIGNMENT  MEMBERS  CONNECTORS  ASSIGNED
connect  connect  Stable  4      4           2        1           3/3
""",
    "plugins": """\
NAME           TYPE    VERSION  DELIVERY      MODULE
SparkPipeline  source  1.0      exactly-once  fairlead.runtime.connectors.spark_pipeline
""",
    "assignors": """\
NAME      ORIGIN
balanced  built in
mine      entry point mine = shop:Mine of shop 1.2

PROCESS  STATE    RESTARTS  DETAIL
77       running  1
""",
}
DESCRIBED = {
    "connector flights": """\
Name:    flights
Type:    source
State:   RUNNING
Worker:  w1

Config
connector.class:  fairlead.runtime.connectors.spark_pipeline.SparkPipeline
name:             flights
tasks.max:        2

TASK       STATE    WORKER  ROWS  BATCHES  LAG     LAST COMMIT  REASON
flights-0  RUNNING  w1      840   8        1.2 MB  5m ago
flights-1  FAILED   w2      0     0                             no such column: carrier

Failures
flights-1:  no such column: carrier
              at line 3
""",
    "worker w1": """\
Name:        w1
Worker:      127.0.0.1:8083/w1
Group:       connect
Process:     running
Process id:  4711
Restarts:    0

Member
State:      STABLE
Epoch:      4
Holds:      flights flights-0
Target:     flights flights-0
Member id:  1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed
Capacity:   1
Protocol:   connect
""",
    "worker 127.0.0.1:8083/w3": """\
Name:      w3
Worker:    127.0.0.1:8083/w3
Process:   backing-off
Restarts:  3
Detail:    killed
""",
    "group connect": """\
Group:             connect
Type:              connect
State:             Stable
Group epoch:       4
Assignment epoch:  4
Last rebalance:    member-joined w2, 2013-01-01T00:26:40.000Z
Assignor:          balanced
Configured:        flights flights-0..1
Log end:           42

Settings
session.timeout.ms:  20000

MEMBER  STATE   EPOCH  HOLDS              GIVES UP  MEMBER ID
w1      STABLE  4      flights flights-0            1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed
w2      STABLE  4      flights-1                    9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d
""",
    "plugin SparkPipeline": """\
Class:     fairlead.runtime.connectors.spark_pipeline.SparkPipeline
Type:      source
Version:   1.0
Delivery:  exactly-once

KEY          TYPE    DEFAULT   MEANING
source.path  string  required  The folder that files land in.
tasks.max    int     1         How many tasks at most share the work.
""",
}
DOCUMENTS: dict[str, Any] = {
    "get connectors": answered.CONNECTORS,
    "get tasks": answered.TASKS,
    "get workers": answered.WORKERS,
    "get groups": answered.GROUPS,
    "get plugins": answered.PLUGINS,
    "get assignors": answered.ASSIGNORS,
    "describe connector flights": {
        **answered.INFO,
        "status": answered.STATUS,
        "progress": answered.PROGRESS,
    },
    "describe worker w1": answered.WORKERS["workers"][0],
    "describe group connect": answered.GROUP,
    "describe plugin SparkPipeline": {**answered.PLUGINS[0], "configs": answered.KEYS},
}


@pytest.fixture(autouse=True)
def five_minutes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was committed last is five minutes old."""
    monkeypatch.setattr("time.time", lambda: answered.COMMITTED_MS / 1000 + 300)


def test_status_is_the_cluster_at_a_glance(run: Run, cluster: Cluster) -> None:
    assert run("status", "--url", cluster.url) == (0, STATUS.format(url=cluster.url), "")


def test_status_tells_why_no_target_could_be_computed(run: Run, cluster: Cluster) -> None:
    error = "assignor mine: ZeroDivisionError: division by zero (shop.py, line 7)"
    cluster.answer("GET", "/groups", [{**answered.GROUPS[0], "assignor_error": error}])
    told = run("status", "--url", cluster.url).out
    rows = f"group connect  {error}\nworker w3      killed\n"
    assert f"\nTroubles\nTROUBLE        REASON\n{rows}" in told


def test_status_tells_of_the_jvm_that_workers_share(run: Run, cluster: Cluster) -> None:
    engine = {"pid": 4712, "state": "running", "restarts": 1, "detail": ""}
    cluster.answer("GET", "/workers", {**answered.WORKERS, "engine": engine})
    told = run("status", "--url", cluster.url).out
    assert "Shared JVM:  running, pid 4712, restarts 1\n" in told
    down = {**engine, "pid": None, "state": "backing-off", "detail": "the JVM was killed"}
    cluster.answer("GET", "/workers", {**answered.WORKERS, "engine": down})
    told = run("status", "--url", cluster.url).out
    assert "Shared JVM:  backing-off, restarts 1\n" in told
    assert "1 shared JVM down" in " ".join(told.split())
    lines = [" ".join(each.split()) for each in told.splitlines()]
    assert "shared JVM the JVM was killed" in lines


WITH_TRAITS = """\
NAME  PROCESS      MEMBER           EPOCH  CONNECTORS  TASKS  ZONE  TAGS     CAP  PID   RESTARTS
w1    running      STABLE           4      1           1      b     gpu,ssd  2    4711  0
w2                 STABLE,cordoned  4      0           1                     1
w3    backing-off                                                                       3
"""


def test_what_sets_workers_apart_is_told_where_anything_does(run: Run, cluster: Cluster) -> None:
    traits = {"rack": "b", "tags": ["gpu", "ssd"], "capacity": 2}
    plain: dict[str, Any] = {"tags": [], "capacity": 1}
    first, second, third = answered.WORKERS["workers"]
    members = [{**answered.MEMBER_1, **traits}, {**answered.MEMBER_2, **plain}]
    workers = [{**first, "member": members[0]}, {**second, "member": members[1]}, third]
    cluster.answer("GET", "/workers", {"processes_known": True, "workers": workers})
    assert run("get", "workers", "--url", cluster.url) == (0, WITH_TRAITS, "")
    told = run("describe", "worker", "w1", "--url", cluster.url).out
    assert "Zone:       b\nTags:       gpu,ssd\nCapacity:   2\n" in told
    cluster.answer("GET", "/groups/connect", {**answered.GROUP, "members": members})
    told = run("describe", "group", "connect", "--url", cluster.url).out
    assert "\nw1      STABLE  4      b     gpu,ssd  2    flights flights-0" in told


def test_a_worker_that_takes_no_work_yet_is_told_to_be_cold(run: Run, cluster: Cluster) -> None:
    cold = {**answered.MEMBER_1, "capacity": 0}
    first, second, _ = answered.WORKERS["workers"]
    workers = [{**first, "member": cold}, second]
    cluster.answer("GET", "/workers", {"processes_known": True, "workers": workers})
    told = run("get", "workers", "--url", cluster.url).out.splitlines()
    assert "CAP" not in told[0]
    assert told[1].startswith("w1    running  STABLE,cold")
    described = run("describe", "worker", "w1", "--url", cluster.url).out
    assert "Capacity:   none yet, its engine is cold\n" in described


def test_what_nobody_can_take_is_told_with_the_reason(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    reason = "needs tag gpu: no worker that takes work meets this"
    nowhere = {"state": "UNASSIGNED", "worker_id": "", "version": None, "reason": reason}
    idle = {"id": 1, "state": "UNASSIGNED", "worker_id": answered.URL_1, "version": None}
    tasks = [{"id": 0, **nowhere}, idle]
    status = {**answered.STATUS, "connector": nowhere, "tasks": tasks}
    entry = {"status": status, "info": answered.INFO}
    cluster.answer("GET", EXPANDED, {"flights": entry})
    left_out = [answered.resource("flights", reason=reason)]
    target = {**answered.GROUP["target"], "unplaceable": left_out}
    cluster.answer("GET", "/groups/connect", {**answered.GROUP, "target": target})
    told = run("status", "--url", cluster.url).out
    assert f"SparkPipeline  {reason}\n" in told
    assert told.splitlines()[-2:] == [
        f"flights-0  UNASSIGNED                                           {reason}",
        "flights-1  UNASSIGNED  w1",
    ]
    told = run("describe", "group", "connect", "--url", cluster.url).out
    assert f"\nUnplaceable\nUNPLACEABLE  REASON\nflights      {reason}\n" in told


@pytest.mark.parametrize("kind", LISTED)
def test_get_lists_a_kind(kind: str, run: Run, cluster: Cluster) -> None:
    assert run("get", kind, "--url", cluster.url) == (0, LISTED[kind], "")


@pytest.mark.parametrize("what", DESCRIBED)
def test_describe_tells_one_in_full(what: str, run: Run, cluster: Cluster) -> None:
    assert run("describe", *what.split(), "--url", cluster.url) == (0, DESCRIBED[what], "")


@pytest.mark.parametrize("verb", DOCUMENTS)
def test_programs_get_the_documents_as_the_cluster_told_them(
    verb: str, run: Run, cluster: Cluster
) -> None:
    as_json = run(*verb.split(), "--url", cluster.url, "-o", "json")
    as_yaml = run(*verb.split(), "--url", cluster.url, "-o", "yaml")
    assert (as_json.code, as_json.err, json.loads(as_json.out)) == (0, "", DOCUMENTS[verb])
    assert (as_yaml.code, as_yaml.err, yaml.safe_load(as_yaml.out)) == (
        0,
        "",
        DOCUMENTS[verb],
    )


def test_status_for_programs_holds_all_that_was_asked(run: Run, cluster: Cluster) -> None:
    assert json.loads(run("status", "--url", cluster.url, "-o", "json").out) == {
        "url": cluster.url,
        "version": "0.1.0",
        "cluster_id": "abc",
        "health": answered.DEGRADED,
        "groups": answered.GROUPS,
        "workers": answered.WORKERS,
        "connectors": answered.CONNECTORS,
        "tasks": answered.TASKS,
        "folder": None,
        "nodes": None,
    }


REPORT = {
    "folder": "/etc/connectors",
    "mode": "plan",
    "prunes": True,
    "state": "failed",
    "files": 3,
    "in_folder": 2,
    "to_apply": [
        {
            "name": "a",
            "is_new": False,
            "changes": [{"key": "tasks.max", "from": "1", "to": "2"}],
            "warnings": [],
        }
    ],
    "to_delete": ["b"],
    "drifted": ["a"],
    "errors": [{"file": "c.yaml", "connector": "", "message": "c.yaml is broken in line 3"}],
}


def test_status_tells_how_connectors_differ_from_the_folder_of_files(
    run: Run, cluster: Cluster
) -> None:
    cluster.answer("GET", FOLDER, REPORT)
    out = run("status", "--url", cluster.url).out
    assert (
        "Files: /etc/connectors: failed, 2 connectors in 3 files, 1 to create or change, 1 to"
        " delete, 1 of them written by others, 1 error"
    ) in " ".join(out.split())
    lines = out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("FILES"))
    assert [line.split(None, 2) for line in lines[at : at + 4]] == [
        ["FILES", "NAME", "DETAIL"],
        ["change", "a", "tasks.max; somebody else wrote it last"],
        ["delete", "b", "its file is gone"],
        ["error", "c.yaml", "c.yaml is broken in line 3"],
    ]


def test_a_cluster_that_is_not_well_is_still_told_about(run: Run, cluster: Cluster) -> None:
    unwell = {"status": "unhealthy", "error_code": 503, "message": "group connect is restarted"}
    cluster.answer("GET", "/health", unwell, 503)
    ended = run("status", "--url", cluster.url)
    assert (ended.code, ended.out.splitlines()[2:4]) == (
        0,
        ["Health:   unhealthy", "Detail:   group connect is restarted"],
    )


def test_status_tells_which_process_is_slow(run: Run, cluster: Cluster) -> None:
    message = "group connect (pid 12) has not answered for 7 s"
    cluster.answer("GET", "/health", {"status": "slow", "error_code": 503, "message": message}, 503)
    ended = run("status", "--url", cluster.url)
    assert ended.out.splitlines()[2:4] == ["Health:   slow", f"Detail:   {message}"]


def with_tasks(cluster: Cluster, *tasks: dict[str, object]) -> None:
    entry = {"status": {**answered.STATUS, "tasks": list(tasks)}, "info": answered.INFO}
    cluster.answer("GET", EXPANDED, {"flights": entry})
    workers = answered.WORKERS["workers"][:2]
    cluster.answer("GET", "/workers", {**answered.WORKERS, "workers": workers})


@pytest.mark.parametrize(
    ("task", "health"),
    [
        ({"state": "RUNNING"}, "healthy"),
        ({"state": "PAUSED"}, "healthy"),
        ({"state": "RUNNING", "reason": "no files yet"}, "degraded"),
        ({"state": "UNASSIGNED"}, "degraded"),
        ({"state": "RESTARTING", "reason": "the engine is down"}, "degraded"),
        ({"state": "FAILED", "trace": "no such column"}, "degraded"),
    ],
)
def test_a_cluster_is_degraded_while_a_task_failed_or_waits(
    task: dict[str, object], health: str, run: Run, cluster: Cluster
) -> None:
    with_tasks(cluster, {"id": 0, "worker_id": answered.URL_1, "version": None, **task})
    told = json.loads(run("status", "--url", cluster.url, "-o", "json").out)
    assert told["health"]["status"] == health


def test_a_task_that_runs_and_has_a_remark_is_not_told_to_wait(run: Run, cluster: Cluster) -> None:
    remark = "skipped 1, since symbolic links are not followed"
    with_tasks(
        cluster, {"id": 0, "worker_id": "", "version": None, "state": "RUNNING", "reason": remark}
    )
    message = json.loads(run("status", "--url", cluster.url, "-o", "json").out)["health"]["message"]
    assert message.endswith("; of its connectors, tasks and workers: 1 RUNNING with a remark")


def test_a_reason_is_told_in_full_where_nobody_looks_through_a_terminal(
    run: Run, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "the folder /data/landing cannot be listed: Permission denied; let w1's user read it"
    with_tasks(
        cluster,
        {
            "id": 0,
            "worker_id": "",
            "version": None,
            "state": "FAILED",
            "trace": f"{reason}\n  at 3",
        },
    )
    command = ("get", "tasks", "--url", cluster.url)
    assert run(*command).out.endswith(f" {reason}\n")
    monkeypatch.delenv("COLUMNS")
    assert run(*command).out.endswith(f" {reason}\n")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert f" {reason[:59]}…\n" in run(*command).out


def test_an_empty_cluster_says_what_to_do(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", EXPANDED, {})
    assert run("get", "connectors", "--url", cluster.url) == (
        0,
        "no connectors: add one with `fairlead create -f FILE`\n",
        "",
    )


def test_keys_that_only_some_configs_have_are_told_by_what_selects_them(
    run: Run, cluster: Cluster
) -> None:
    topic = {**answered.KEYS[0], "name": "source.topic", "only_with": "source.type=kafka"}
    path = f"/connector-plugins/{answered.CLASS}/config"
    cluster.answer("GET", path, [*answered.KEYS, topic])
    told = run("describe", "plugin", "SparkPipeline", "--url", cluster.url)
    assert (told.code, told.out.partition("\n\nKeys with")[2]) == (
        0,
        " source.type=kafka\n"
        "KEY           TYPE    DEFAULT   MEANING\n"
        "source.topic  string  required  The folder that files land in.\n",
    )


def test_a_transform_is_described_as_a_connector_class_is(run: Run, cluster: Cluster) -> None:
    name = answered.TRANSFORM["class"]
    cluster.answer("GET", f"/connector-plugins/{name.replace('$', '%24')}/config", [])
    described = f"Class:    {name}\nType:     transformation\nVersion:  1\n\nno keys\n"
    for each in ("InsertField$Value", name):
        told = run("describe", "plugin", each, "--url", cluster.url)
        assert told == (0, described, "")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("connector x", "there is no /connectors/x (HTTP 404)"),
        ("group x/y", "there is no /groups/x%2Fy (HTTP 404)"),
        ("worker w9", "there is no worker w9; there is: w1, w2, w3"),
        ("plugin X", "there is no plugin X; there is: SparkPipeline, InsertField$Value"),
    ],
)
def test_what_is_not_there_fails(what: str, said: str, run: Run, cluster: Cluster) -> None:
    ended = run("describe", *what.split(), "--url", cluster.url)
    assert ended == (1, "", f"fairlead: {said}\n")


@pytest.mark.parametrize(
    ("one", "many"), [("get worker", "get workers"), ("describe workers w1", "describe worker w1")]
)
def test_a_kind_is_named_in_singular_or_plural(
    one: str, many: str, run: Run, cluster: Cluster
) -> None:
    assert run(*one.split(), "--url", cluster.url) == run(*many.split(), "--url", cluster.url)


def test_a_kind_that_there_is_not_is_refused_with_what_was_meant(
    run: Run, cluster: Cluster
) -> None:
    wrong = run("describe", "conector", "flights", "--url", cluster.url)
    assert wrong.code == 2
    assert wrong.err == (
        "fairlead: 'conector' is no kind (did you mean connector?); a connector that is called so:"
        " `fairlead describe connector conector flights`\n"
    )
    assert cluster.asked == []


@pytest.mark.parametrize("verb", ["describe connector", "pause", "delete connector", "restart"])
def test_a_connector_of_a_similar_name_is_named(verb: str, run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/connectors", ["flights", "orders"])
    told = run(*verb.split(), "fligths", "--url", cluster.url)
    assert told.code == 1
    assert told.err.endswith("; did you mean flights? (HTTP 404)\n")
    told = run(*verb.split(), "elsewhere", "--url", cluster.url)
    assert "did you mean" not in told.err


def test_what_a_terminal_would_act_on_is_escaped(run: Run, cluster: Cluster) -> None:
    plugin = {"class": "a.\x1b[31mB\x9b", "type": "[red]x[/red]", "version": "\x07"}
    hostile = [{**plugin, "delivery": "at-least-once"}]
    cluster.answer("GET", "/connector-plugins", hostile)
    table = run("get", "plugins", "--url", cluster.url)
    as_json = run("get", "plugins", "--url", cluster.url, "-o", "json")
    assert table.out == (
        "NAME           TYPE          VERSION  DELIVERY       MODULE\n"
        "\\x1b[31mB\\x9b  [red]x[/red]  \\x07     at-least-once  a\n"
    )
    assert json.loads(as_json.out) == hostile
    assert not set(as_json.out) & {"\x1b", "\x9b", "\x07"}


@pytest.mark.parametrize("found", [None, 7, {"a": 1}, [1], {"workers": 3}])
@pytest.mark.parametrize(
    "verb", ["status", *(f"get {kind}" for kind in LISTED), "describe group x"]
)
def test_a_misshapen_answer_is_told_in_one_line(
    verb: str, found: object, run: Run, cluster: Cluster
) -> None:
    for path in (*answered.ANSWERS, "/groups/x"):
        cluster.answer("GET", path, found)
    ended = run(*verb.split(), "--url", cluster.url)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert " answers otherwise than this version of fairlead expects (" in ended.err


def test_tables_stay_within_the_terminal(run: Run, cluster: Cluster) -> None:
    name = "package." * 30 + "Name" * 30
    long = {"class": name, "type": "source" * 9, "version": "1" * 50, "delivery": "x"}
    cluster.answer("GET", "/connector-plugins", [long])
    ended = run("get", "plugins", "--url", cluster.url)
    assert max(map(len, ended.out.splitlines())) <= 100
    assert "…" not in ended.out


def test_the_cluster_of_the_data_folder_is_the_one_that_its_node_noted(
    run: Run, cluster: Cluster
) -> None:
    answer = run("get", "groups", "--data-dir", "data")
    assert answer.code == 3
    Path("data/run").mkdir(parents=True)
    Path("data/run/node.json").write_text(json.dumps({"pid": 1, "rest": cluster.url}))
    assert run("get", "groups", "--data-dir", "data") == (0, LISTED["groups"], "")


def test_without_a_running_node_the_configured_listener_is_asked(
    run: Run, cluster: Cluster
) -> None:
    assert run("get", "groups", "--set", f"listeners={cluster.url}") == (0, LISTED["groups"], "")
    assert cluster.asked == [Asked("GET", "/groups", None)]


def test_what_is_strange_about_a_config_is_told_by_describe_and_status(
    run: Run, cluster: Cluster
) -> None:
    warnings = {"warnings": ["unknown key owner: it has no effect"]}
    status = {**answered.STATUS, **warnings}
    told = {**answered.INFO, **warnings, "delivery": "at-least-once"}
    cluster.answer("GET", "/connectors/flights", told)
    cluster.answer("GET", "/connectors/flights/status", status)
    described = run("describe", "connector", "flights", "--url", cluster.url).out
    assert "unknown key owner: it has no effect\n" in described
    assert "Delivery:  at-least-once\n" in described
    expanded = convert({"flights": {"status": status}}, dict[str, ExpandedConnector])
    rows = [("flights", "unknown key owner: it has no effect")]
    assert tabulate_config_warnings(expanded) == [
        Table(("CONNECTOR", "WARNING"), rows, title="Warnings")
    ]


def test_the_last_rebalance_names_a_connector_in_full(run: Run, cluster: Cluster) -> None:
    last = {"cause": "connector-added", "subject": "a/b", "time_ms": 1_357_000_000_000, "actor": ""}
    cluster.answer("GET", "/groups/connect", {**answered.GROUP, "last_rebalance": last})
    told = run("describe", "group", "connect", "--url", cluster.url).out
    assert "Last rebalance:    connector-added a/b, 2013-01-01" in told
