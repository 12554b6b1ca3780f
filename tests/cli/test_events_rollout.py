"""`events` and `rollout`: what happened, and the configs that a connector has had."""

import json
from typing import Any

import pytest
from cli.conftest import Asked, Cluster, Run, in_each_pause

from fairlead_tests.cli import answered

TIME_MS = answered.COMMITTED_MS


def event(text: str, **more: object) -> dict[str, Any]:
    known = {"connector": None, "task": None, "worker": "", "epoch": None, "type": "Normal"}
    return {"time_ms": TIME_MS, "text": text, **known, **more}


EVENTS = [
    event("connector flights created", connector="flights"),
    event("flights-0 runs at w1", connector="flights", task=0, worker="w1"),
    event("worker w2 left", worker="w2", type="Warning"),
]


def listed(start: int, *found: dict[str, Any]) -> dict[str, Any]:
    return {"group_id": "connect", "start": start, "next": start + len(found), "events": [*found]}


@pytest.fixture
def eventful(cluster: Cluster) -> Cluster:
    cluster.answer("GET", "/groups/connect/events?extended=true&start=-1", listed(7, *EVENTS))
    cluster.answer("GET", "/groups/connect/events?start=-1", listed(7, *EVENTS))
    return cluster


def test_events_are_listed_with_their_subjects(run: Run, eventful: Cluster) -> None:
    assert run("events", "--url", eventful.url).out == (
        "TIME                      TYPE     SUBJECT    EVENT\n"
        "2013-01-01T00:26:40.000Z  Normal   flights    connector flights created\n"
        "2013-01-01T00:26:40.000Z  Normal   flights-0  flights-0 runs at w1\n"
        "2013-01-01T00:26:40.000Z  Warning  worker/w2  worker w2 left\n"
    )


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ("--for flights", [0, 1]),
        ("--for connector/flights --types normal", [0, 1]),
        ("--for flights/0", [1]),
        ("--for task/flights-0 --for worker/w2", [1, 2]),
        ("--types warning", [2]),
        ("--limit 1", [2]),
        ("--for nobody", []),
    ],
)
def test_events_are_chosen_by_subject_and_type(
    options: str, chosen: list[int], run: Run, eventful: Cluster
) -> None:
    ended = run("events", *options.split(), "-o", "json", "--url", eventful.url)
    assert json.loads(ended.out) == [EVENTS[each] for each in chosen]


def test_a_watch_tells_each_event_once(
    run: Run, eventful: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = event("flights-0 has FAILED", connector="flights", task=0, type="Warning")
    rounds = iter([listed(7, *EVENTS), listed(7, *EVENTS, later), listed(9, later)])

    def sleep(_: float) -> None:
        found = next(rounds, None)
        if found is None:
            raise KeyboardInterrupt
        eventful.answer("GET", "/groups/connect/events?start=7", found)

    in_each_pause(monkeypatch, sleep)
    ended = run("events", "-w", "--for", "flights", "--url", eventful.url)
    assert ended.out.splitlines() == [
        "2013-01-01T00:26:40.000Z  Normal   flights: connector flights created",
        "2013-01-01T00:26:40.000Z  Normal   flights-0: flights-0 runs at w1",
        "2013-01-01T00:26:40.000Z  Warning  flights-0: flights-0 has FAILED",
        "2013-01-01T00:26:40.000Z  Warning  flights-0: flights-0 has FAILED",
    ], "a place that the log has left behind is begun anew"


REVISIONS = {
    "name": "flights",
    "revisions": [
        {
            "revision": number,
            "time_ms": TIME_MS,
            "actor": actor,
            "changed": changed,
            "config": {"tasks.max": str(number)},
        }
        for number, actor, changed in (
            (3, "ann", ["name", "tasks.max"]),
            (5, None, ["tasks.max"]),
            (9, None, ["header"]),
        )
    ],
}


@pytest.fixture
def revised(cluster: Cluster) -> Cluster:
    cluster.answer("GET", "/connectors/flights/revisions", REVISIONS)
    cluster.answer("POST", "/connectors/flights/rollback", answered.INFO)
    return cluster


def test_the_configs_of_a_connector_are_listed(run: Run, revised: Cluster) -> None:
    assert run("rollout", "history", "connector", "flights", "--url", revised.url).out == (
        "REVISION  TIME                      BY   CHANGED\n"
        "3         2013-01-01T00:26:40.000Z  ann  name, tasks.max\n"
        "5         2013-01-01T00:26:40.000Z       tasks.max\n"
        "9         2013-01-01T00:26:40.000Z       header\n"
    )
    one = run("rollout", "history", "flights", "--revision", "5", "--url", revised.url)
    assert one.out.endswith("\nConfig\ntasks.max:  5\n")
    none = run("rollout", "history", "flights", "--revision", "4", "--url", revised.url)
    told = "fairlead: connector flights has no revision 4; there is: 3, 5, 9\n"
    assert none == (1, "", told)


def test_an_undo_goes_back_by_one_or_to_a_revision(run: Run, revised: Cluster) -> None:
    undone = run("rollout", "undo", "flights", "--url", revised.url)
    assert undone == (0, "connector flights has its config of the one before again\n", "")
    run("rollout", "undo", "flights", "--to-revision", "3", "--url", revised.url)
    asked = [Asked("POST", "/connectors/flights/rollback", {"revision": to}) for to in (None, 3)]
    assert revised.asked == asked


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "connector flights would change: header\n"),
        (["--to-revision", "3"], "connector flights would change: header, tasks.max\n"),
        (["--to-revision", "9"], "connector flights would change: nothing\n"),
    ],
)
def test_an_undo_shows_first_what_it_would_change(
    options: list[str], said: str, run: Run, revised: Cluster
) -> None:
    ended = run("rollout", "undo", "flights", "--dry-run", *options, "--url", revised.url)
    assert ended == (0, said, "")
    assert {each.method for each in revised.asked} == {"GET"}


def test_a_rollout_is_of_one_connector(run: Run, revised: Cluster) -> None:
    assert run("rollout", "undo", "a", "b", "--url", revised.url).code == 2
    assert run("rollout", "undo", "--dry-run", "flights", "--to-revision", "4").code != 0
    assert revised.asked == []
