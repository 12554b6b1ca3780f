"""`plan`: what is asked of the cluster, and how its answer looks."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.conftest import Asked, Cluster, Run

PATH = "/groups/connect/plan"
W1 = {"worker": "127.0.0.1:8083/w1", "member_id": "W1"}
W2 = {"worker": "127.0.0.1:8083/w2", "member_id": "W2"}
NEW = {"worker": "new-1", "member_id": "new-1"}
UNCHANGED: dict[str, Any] = {
    "group_id": "connect",
    "state": "Stable",
    "group_epoch": 12,
    "settled": True,
    "assignor": "balanced",
    "rounds": [],
    "moves": [],
    "starts": [],
    "stops": [],
    "parked": [],
    "unplaceable": [],
    "workers": [{**W1, "before": None, "after": None, "stays": 5}],
    "splits": [],
    "stays": 5,
    "handovers": 0,
    "cold": [],
    "warnings": [],
}


def a_round(cause: str, subject: str, **counts: int) -> dict[str, Any]:
    causes = [{"cause": cause, "subject": subject}]
    return {"causes": causes, "moved": 0, "placed": 0, "retired": 0, "displaced": 0, **counts}


def load(connectors: int, tasks: int) -> dict[str, int]:
    return {"connectors": connectors, "tasks": tasks, "weight": connectors + tasks}


def downtime(of: str) -> dict[str, Any]:
    return {"median_ms": 240, "p99_ms": 1_910, "measured": 31, "of": of}


PLAN = {
    **UNCHANGED,
    "state": "Reconciling",
    "settled": False,
    "rounds": [
        a_round("member-joined", "new-1", moved=3),
        a_round("connector-deleted", "a", retired=1),
        a_round("from-the-future", "x"),
        a_round("worker-drained", "127.0.0.1:8083/w2", moved=1, displaced=2),
    ],
    "moves": [
        {
            "id": "flights-1",
            "giver": W1,
            "taker": NEW,
            "reason": "balance",
            "detail": "",
            "expected_downtime": downtime("connector"),
        },
        {
            "id": "flights-2",
            "giver": W2,
            "taker": NEW,
            "reason": "constraint",
            "detail": "drain",
            "expected_downtime": downtime("group"),
        },
        {
            "id": "trains",
            "giver": W2,
            "taker": W1,
            "reason": "balance",
            "detail": "",
            "expected_downtime": None,
        },
    ],
    "starts": [{"id": "flights-3", "taker": W1}],
    "stops": [{"id": "a", "giver": W2}],
    "parked": [{"id": "b-0", "deadline_ms": 1_357_000_300_000}],
    "unplaceable": [
        {"id": each, "reason": "needs tag gpu: no worker that takes work meets this"}
        for each in ("c", "c-0")
    ],
    "workers": [
        {**W1, "before": load(1, 3), "after": load(1, 3), "stays": 3},
        {**W2, "before": load(1, 2), "after": None, "stays": 0},
        {**NEW, "before": None, "after": load(0, 2), "stays": 0},
    ],
    "splits": [
        {"connector": "flights", "before": 3, "after": 4, "is_most": True, "restarts": 3},
        {"connector": "trains", "before": 2, "after": 2, "is_most": False, "restarts": 0},
        {"connector": "c", "before": 1, "after": 1, "is_most": False, "restarts": 0},
    ],
    "cold": [W1, W2],
    "stays": 17,
    "handovers": 5,
    "warnings": ["c: unknown key tag: it has no effect; did you mean tags?"],
}
TABLE = """\
Group:     connect, Reconciling at epoch 12; planned from where it comes to rest
Assignor:  balanced
Epoch:     member-joined new-1: 3 move
Epoch:     connector-deleted a: 1 stop
Epoch:     from-the-future x: nothing moves
Epoch:     worker-drained w2: 1 move, 2 find no place any more
Tasks:     flights has 3, will have 4, if it makes as many as it may; what stays is restarted
Tasks:     trains keeps 2
Tasks:     c keeps 1 until a worker runs it: only a running connector changes its tasks

RESOURCE   FROM  TO     WHY                EXPECTED DOWNTIME
flights-1  w1    new-1  balance            0.24 s, p99 1.91 s (31 measured)
flights-2  w2    new-1  constraint, drain  0.24 s, p99 1.91 s (31 measured, of all connectors)
trains     w2    w1     balance            not measured yet
flights-3        w1     starts
a          w2           stops

WORKER  CONNECTORS  TASKS  WEIGHT  STAYS
w1      1           3      4       3
w2      1 > -       2 > -  3 > -   0
new-1   - > 0       - > 2  - > 2   0

Not warm yet:  w1 w2: what they will take then is not in this plan
Warning:       c: unknown key tag: it has no effect; did you mean tags?
Unplaceable:   c c-0: needs tag gpu: no worker that takes work meets this
Parked:        b-0 until 2013-01-01T00:31:40.000Z
Verdict:       3 of 21 resources move, 17 stay; 3 of these are restarted; 1 start; 1 stop; 2 cannot
               be placed; 5 hand-overs on the way
"""


def test_a_plan_is_a_table_with_a_verdict(run: Run, cluster: Cluster) -> None:
    cluster.answer("POST", PATH, PLAN)
    assert run("plan", "--add-worker", "1", "--url", cluster.url) == (0, TABLE, "")


def test_a_plan_that_changes_nothing_says_so(run: Run, cluster: Cluster) -> None:
    cluster.answer("POST", PATH, UNCHANGED)
    ended = run("plan", "--drain", "w1", "--url", cluster.url)
    assert "\nnothing moves, starts or stops\n" in ended.out
    assert ended.out.endswith("\nVerdict:  0 of 5 resources move, 5 stay\n")


def test_workers_of_one_name_are_told_apart_by_their_members(run: Run, cluster: Cluster) -> None:
    lost = {"worker": "127.0.0.1:8083/w1", "member_id": "0123456789"}
    workers = [{**each, "before": load(0, 1), "after": None, "stays": 0} for each in (W1, lost)]
    stops = [{"id": "a", "giver": W1}, {"id": "b", "giver": lost}]
    cluster.answer("POST", PATH, {**UNCHANGED, "workers": workers, "stops": stops, "stays": 0})
    lines = run("plan", "--delete", "a", "--url", cluster.url).out.splitlines()
    named = [line.split()[:2] for line in lines]
    assert [each for each in named if each[:1] in (["a"], ["b"])] == [
        ["a", "w1(W1)"],
        ["b", "w1(01234567)"],
    ]
    assert [each[0] for each in named if each and each[0].startswith("w1")] == [
        "w1(W1)",
        "w1(01234567)",
    ]


def test_programs_are_given_the_whole_plan(run: Run, cluster: Cluster) -> None:
    cluster.answer("POST", PATH, PLAN)
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        ended = run("plan", "--drain", "w1", "-o", output, "--url", cluster.url)
        assert (ended.code, read(ended.out)) == (0, PLAN)


def test_all_changes_are_sent_at_once(run: Run, cluster: Cluster) -> None:
    cluster.answer("POST", PATH, PLAN)
    Path("one.yaml").write_text("name: a\nconfig: {tasks.max: 3}\n")
    Path("two.json").write_text('[{"name": "b", "tasks.max": "2"}, {"name": "c", "config": {}}]')
    run(
        *("plan", "-f", "one.yaml", "-f", "two.json", "--add-worker", "2", "--tag", "gpu"),
        *("--tag", "ssd", "--zone", "b", "--capacity", "4", "--remove-worker", "w1"),
        *("--drain", "w2", "--drain", "w3", "--scale", "d=e=8", "--delete", "f"),
        *("--url", cluster.url),
    )
    sent: dict[str, Any] = {
        "add_workers": 2,
        "worker": {"zone": "b", "tags": ["gpu", "ssd"], "capacity": 4},
        "drain": ["w2", "w3"],
        "remove_workers": ["w1"],
        "delete": ["f"],
        "connectors": [
            {"name": "a", "config": {"tasks.max": "3"}},
            {"name": "b", "config": {"name": "b", "tasks.max": "2"}},
            {"name": "c", "config": {}},
        ],
        "scale": {"d=e": 8},
    }
    assert cluster.asked[-1] == Asked("POST", PATH, sent)


def test_only_what_is_asked_for_is_sent(run: Run, cluster: Cluster) -> None:
    cluster.answer("POST", "/groups/a%2Fb/plan", PLAN)
    run("plan", "--add-worker", "1", "--group", "a/b", "--url", cluster.url)
    assert cluster.asked == [Asked("POST", "/groups/a%2Fb/plan", {"add_workers": 1})]


def test_a_zone_without_a_name_is_left_for_the_cluster_to_refuse(
    run: Run, cluster: Cluster
) -> None:
    cluster.answer("POST", PATH, PLAN)
    run("plan", "--add-worker", "1", "--zone", "", "--url", cluster.url)
    assert cluster.asked[-1] == Asked("POST", PATH, {"add_workers": 1, "worker": {"zone": ""}})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            [],
            "say what is to be planned: a file of connectors (-f), --add-worker, --remove-worker,"
            " --drain, --scale or --delete",
        ),
        (
            ["--zone", "b", "--drain", "w1"],
            "--tag, --zone and --capacity are of workers that --add-worker adds",
        ),
        (["--scale", "flights"], "--scale 'flights': CONNECTOR=N is expected, such as flights=8"),
        (["--scale", "=8"], "--scale '=8': CONNECTOR=N is expected, such as flights=8"),
        (["--scale", "a=x"], "--scale 'a=x': CONNECTOR=N is expected, such as flights=8"),
        (["--scale", "a=²"], "--scale 'a=²': CONNECTOR=N is expected, such as flights=8"),
        (
            ["--scale", "a=12345678901"],
            "--scale 'a=12345678901': CONNECTOR=N is expected, such as flights=8",
        ),
        (["--scale", "a=2", "--scale", "a=3"], "--scale says 2 and 3 of a: which one?"),
        (
            ["--scale", "a=0"],
            "--scale 'a=0': no connector has less than one task; --delete ends it",
        ),
        (["-f", "c"], "c holds no connector: name and config are expected"),
    ],
)
def test_what_makes_no_sense_is_not_sent(
    arguments: list[str], said: str, run: Run, cluster: Cluster
) -> None:
    Path("c").write_text("[3]")
    assert run("plan", *arguments, "--url", cluster.url) == (2, "", f"fairlead: {said}\n")
    assert cluster.asked == []


def test_a_refusal_is_told_in_the_words_of_the_cluster(run: Run, cluster: Cluster) -> None:
    told = {"error_code": 404, "message": "there is no worker 'w9': there are w1, w2"}
    cluster.answer("POST", PATH, told, 404)
    assert run("plan", "--drain", "w9", "--url", cluster.url) == (
        1,
        "",
        "fairlead: there is no worker 'w9': there are w1, w2 (HTTP 404)\n",
    )


def test_without_a_cluster_there_is_no_plan(run: Run) -> None:
    assert run("plan", "--drain", "w1", "--url", "http://127.0.0.1:1").code == 3
