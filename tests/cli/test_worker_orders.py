"""`cordon`, `uncordon`, `drain`, `expect`, `rebalance`: what is ordered, and what is said of it."""

from typing import Any

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead_tests.cli import answered

OPEN: dict[str, Any] = {
    "group_id": "connect",
    "worker": "n1/w1",
    "cordoned": False,
    "draining": False,
    "expected_back_ms": None,
    "removing": None,
}


@pytest.mark.parametrize(
    ("verb", "told", "said"),
    [
        ("cordon", {"cordoned": True}, "worker n1/w1 is cordoned\n"),
        ("drain", {"cordoned": True, "draining": True}, "worker n1/w1 is cordoned, draining\n"),
        ("uncordon", {}, "worker n1/w1 is open to work\n"),
    ],
)
def test_an_order_is_put_and_what_holds_is_told(
    verb: str, told: dict[str, Any], said: str, run: Run, cluster: Cluster
) -> None:
    cluster.answer("PUT", f"/workers/w1/{verb}", OPEN | told, 202)
    assert run(verb, "w1", "--url", cluster.url) == (0, said, "")
    assert cluster.asked == [Asked("PUT", f"/workers/w1/{verb}", None)]


@pytest.mark.parametrize(
    ("within", "within_ms"), [("1500ms", 1_500), ("90s", 90_000), ("10m", 600_000), ("0s", 0)]
)
def test_a_worker_is_expected_within_a_time(
    within: str, within_ms: int, run: Run, cluster: Cluster
) -> None:
    until = {"expected_back_ms": 1_700_000_000_000} if within_ms else {}
    cluster.answer("PUT", "/workers/w1/expect", OPEN | until, 202)
    said = "worker n1/w1 is open to work" + (", expected back" if within_ms else "")
    assert run("expect", "w1", "--within", within, "--url", cluster.url) == (0, f"{said}\n", "")
    assert cluster.asked == [Asked("PUT", "/workers/w1/expect", {"within_ms": within_ms})]


@pytest.mark.parametrize("within", ["", "10", "m", "-1s", "1.5h", "999999999h", "1d", "\u0661s"])
def test_what_is_no_time_is_not_sent(within: str, run: Run, cluster: Cluster) -> None:
    assert run("expect", "w1", "--within", within, "--url", cluster.url) == (
        2,
        "",
        f"fairlead: {within!r} is no time, or too long a one: write 90s, 10m or 2h\n",
    )
    assert cluster.asked == []


def test_an_unknown_worker_is_told_in_the_cluster_s_words(run: Run, cluster: Cluster) -> None:
    refusal = {"error_code": 404, "message": "there is no worker 'w9': there are n1/w1"}
    cluster.answer("PUT", "/workers/w9/drain", refusal, 404)
    assert run("drain", "w9", "--url", cluster.url) == (
        1,
        "",
        "fairlead: there is no worker 'w9': there are n1/w1 (HTTP 404)\n",
    )


@pytest.mark.parametrize(("flags", "path"), [((), ""), (("--force",), "?force=true")])
def test_a_worker_is_removed_and_what_to_expect_is_told(
    flags: tuple[str, ...], path: str, run: Run, cluster: Cluster
) -> None:
    told = {
        "group_id": "connect",
        "worker": "n1/w1",
        "member_id": "W1",
        "process": "w1",
        "message": "it leaves; its process ends",
    }
    cluster.answer("DELETE", f"/workers/w1{path}", told, 202)
    assert run("remove", "worker", "w1", *flags, "--url", cluster.url) == (
        0,
        "worker n1/w1: it leaves; its process ends\n",
        "",
    )


def test_only_workers_are_removed(run: Run, cluster: Cluster) -> None:
    status, _, said = run("remove", "connector", "a", "--url", cluster.url)
    assert (status, cluster.asked) == (2, [])
    assert "worker" in said


@pytest.mark.parametrize(
    ("words", "group"),
    [([], "lone"), (["--group", "g"], "g"), (["--set", "group.id=s"], "s")],
    ids=["only", "option", "setting"],
)
def test_a_rebalance_is_asked_of_the_only_group_unless_another_is_named(
    words: list[str], group: str, run: Run, cluster: Cluster
) -> None:
    of_clients = {**answered.GROUPS[0], "group_id": "readers", "shard": 0}
    lone = {**answered.GROUPS[0], "group_id": "lone"}
    cluster.answer("GET", "/groups", [lone, of_clients])
    path = f"/groups/{group}/rebalance"
    cluster.answer("POST", path, {**answered.GROUPS[0], "group_id": group}, 202)
    told = run("rebalance", *words, "--url", cluster.url)
    assert told == (0, f"group {group} rebalances: it is Stable at epoch 4\n", "")
    assert cluster.asked[-1] == Asked("POST", path, None)
