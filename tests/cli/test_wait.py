"""`wait`: the states of connectors and workers that a script can wait for."""

from typing import Any

import pytest
from cli.conftest import Cluster, Run

from fairlead_tests.cli import answered

TASK = {"state": "RUNNING", "worker_id": answered.URL_1, "version": "1"}
READ = {**answered.DONE, "lag": {"ranges": 0, "bytes": 0}}


def answer(cluster: Cluster, states: list[str], progress: list[dict[str, Any]]) -> None:
    """Have the connector run with tasks in some states, that have made some progress."""
    tasks = [{**TASK, "id": number, "state": state} for number, state in enumerate(states)]
    status = {**answered.STATUS, "tasks": tasks}
    counts = [{"id": number, **each} for number, each in enumerate(progress)]
    cluster.answer("GET", "/connectors/flights/status", status)
    cluster.answer("GET", "/connectors/flights/progress", {"name": "flights", "tasks": counts})


@pytest.mark.parametrize(
    ("state", "tasks", "progress", "said"),
    [
        ("caught-up", ["RUNNING"] * 2, [READ, answered.NOTHING], "is caught up"),
        ("CAUGHT-UP", ["RUNNING"], [READ], "is caught up"),
        ("failed", ["RUNNING", "FAILED"], [], "has failed"),
        ("running", ["RUNNING"], [], "is running"),
    ],
)
def test_a_state_that_is_there_ends_the_wait(
    state: str,
    tasks: list[str],
    progress: list[dict[str, Any]],
    said: str,
    run: Run,
    cluster: Cluster,
) -> None:
    answer(cluster, tasks, progress)
    ended = run("wait", "flights", "--for", state, "--url", cluster.url)
    assert ended == (0, f"connector flights {said}\n", "")


@pytest.mark.parametrize(
    ("state", "tasks", "progress", "said"),
    [
        ("failed", ["RUNNING"], [], "has not failed after 0 s: RUNNING"),
        (
            "caught-up",
            ["RUNNING"] * 2,
            [READ, answered.DONE],
            "is not caught up after 0 s: flights-1 has 1,200,000 bytes left to read",
        ),
        (
            "caught-up",
            ["RUNNING"],
            [{**READ, "lag": {"ranges": 9, "bytes": 0, "records": 9}}],
            "is not caught up after 0 s: flights-0 has 9 records left to read",
        ),
        (
            "caught-up",
            ["RUNNING"],
            [{**READ, "unpublished": 1}],
            "is not caught up after 0 s: flights-0 has batches to publish: 1",
        ),
        (
            "caught-up",
            ["RUNNING"],
            [answered.NOTHING],
            "is not caught up after 0 s: no task has read anything yet",
        ),
        (
            "caught-up",
            ["FAILED"],
            [READ],
            "will not be caught up: FAILED; it does not restart by itself: mend what is wrong, then"
            " `fairlead restart flights --only-failed --include-tasks`",
        ),
    ],
)
def test_what_a_state_lacks_is_told_at_the_end(
    state: str,
    tasks: list[str],
    progress: list[dict[str, Any]],
    said: str,
    run: Run,
    cluster: Cluster,
) -> None:
    answer(cluster, tasks, progress)
    words = ("wait", "flights", "--for", state, "--timeout", "0s", "--url", cluster.url)
    assert run(*words) == (1, "", f"fairlead: connector flights {said}\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("worker w1 --for running", 0, "worker w1 is running\n"),
        ("worker/w3 --for drained", 0, "worker w3 is drained\n"),
        ("workers w9 --for deleted", 0, "worker w9 is deleted\n"),
        ("worker w1 --for drained", 1, "is not drained after 0 s: it has flights flights-0"),
        ("worker w1 --for deleted", 1, "is not deleted after 0 s: it is still there"),
        ("worker w3 --for running", 1, "is not running after 0 s: its process is backing-off"),
        ("worker w9 --for running", 1, "is not running after 0 s: there is no such worker"),
        ("worker w1 --for paused", 2, "--for paused is not of workers"),
        ("flights --for drained", 2, "--for drained is not of connectors"),
        ("worker w1 -f c.yaml --for running", 2, "--filename are of connectors, not of workers"),
    ],
)
def test_workers_are_waited_for(
    words: str, code: int, said: str, run: Run, cluster: Cluster
) -> None:
    cluster.answer("GET", "/workers", answered.WORKERS)
    ended = run("wait", *words.split(), "--timeout", "0s", "--url", cluster.url)
    assert (ended.code, said in ended.out + ended.err) == (code, True)
