# pyright: basic
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from shutil import which
from subprocess import run
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse

from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.members import ReportStatus, StatusUpdate
from fairlead.events.commits import Cost, Lag
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.model import (
    Cause,
    ClassicMember,
    Resource,
    RunState,
    Token,
    Why,
)
from fairlead.events.records import ClassicGroup
from fairlead.projections.metrics.exposition import Exposition
from fairlead.projections.metrics.families import GroupFigures
from fairlead.projections.metrics.processes import RequestMetrics
from fairlead.projections.traces.spans import epoch_context
from fairlead.projections.views import LogFigures, Progress
from fairlead.projections.watch.group import SECONDS, Durations, WatchCounts
from fairlead_tests.decider import JOIN, Decider

Labels = tuple[tuple[str, str], ...]
Samples = dict[tuple[str, Labels], float]


def busy() -> GroupFigures:
    decider = Decider()
    decider.configure("A A-0 A-1")
    decider.join("W1")
    decider.settle()
    update = StatusUpdate(Resource("A", 0), Token(1, 1), RunState.RUNNING, 0)
    decider.command(ReportStatus("connect", "W1", (update,)))
    return GroupFigures(
        decider.group,
        {Why.MEMBER_JOINED: 3, Why.SESSION_EXPIRED: 1},
        {"control": LogFigures(7, 4096), "offsets": LogFigures(2, 512)},
        {
            "A": Progress(
                4, 100, 90, 900, 1_500, 1, LAG, cost=COST, oldest_commit_ms=1_200, uncommitted=1
            )
        },
        failures={(decider.group.members["W1"].metadata.worker_url, Why.PROCESS_ENDED): 2},
        watched=WatchCounts(durations(40, 700), durations(250), Counter({"A": 3})),
    )


LAG, COST = Lag(3, 300, 5), Cost(1200, 1000, 0, 2500)


def durations(*took_ms: int) -> Durations:
    found = Durations()
    for each in took_ms:
        found.add(each, 7)
    return found


def scrape(groups: Iterable[GroupFigures], accept: str = "") -> tuple[str, str]:
    requests = RequestMetrics()
    requests.observe("GET", "/connectors", 200, 0.004)
    requests.observe("BREW", "unmatched", 404, 0.1)
    text, content_type = Exposition("1.2.3", requests).write(accept, groups)
    return text.decode(), content_type


def samples(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(text)
        for sample in family.samples
    }


def of(group: str = "connect", **labels: str) -> Labels:
    return tuple(sorted({"group": group, **labels}.items()))


def by_bound_and_state() -> Samples:
    """Return the buckets of durations, and the run states of the connector itself."""
    expected: Samples = {}
    for bound in (*SECONDS, math.inf):
        le = "+Inf" if bound == math.inf else str(bound)
        below = sum(each <= bound for each in (0.04, 0.7))
        expected["fairlead_group_rebalance_seconds_bucket", of(le=le)] = below
        expected["fairlead_group_move_seconds_bucket", of(le=le)] = float(bound >= 0.25)
    expected["fairlead_connector_state", of(connector="A", state="unassigned")] = 1
    return expected


def test_a_series_is_told_once_also_of_workers_that_share_a_name() -> None:
    decider = Decider()
    decider.configure("A A-0 A-1")
    for number, node in enumerate(("n1", "n2", "n2")):  # the former process of n2's is not gone yet
        decider.join(f"W{number}", replace(JOIN, url=f"{node}:8083/w1"))
    decider.settle()
    losses = {(f"{node}:8083/w1", Why.SESSION_EXPIRED): 2 for node in ("n1", "n2")}
    figures = replace(busy(), group=decider.group, failures=losses)
    text, _ = scrape([figures])
    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert max(Counter(series).values()) == 1
    told = samples(text)
    assert told["fairlead_worker_resources", of(worker="w1", kind="task")] == 2
    assert told["fairlead_worker_resources", of(worker="w1", kind="connector")] == 1
    assert told["fairlead_worker_losses_total", of(worker="w1", cause="session-expired")] == 4


def test_a_group_is_measured() -> None:
    told = samples(scrape([busy()])[0])
    ours = {key: value for key, value in told.items() if dict(key[1]).get("group") == "connect"}
    states = dict.fromkeys(("empty", "assigning", "reconciling", "stable", "dead"), 0.0)
    seats = dict.fromkeys(("stable", "unrevoked", "unreleased", "away", "unknown"), 0.0)
    kinds = dict.fromkeys(("parked", "awaited", "unplaceable"), (0, 0))
    kinds |= {"configured": (1, 2), "assigned": (1, 2)}
    expected: Samples = {
        ("fairlead_group_epoch", of()): 1,
        ("fairlead_connector_configured_tasks", of(connector="A")): 2,
        ("fairlead_group_type", of(type="connect")): 1,
        ("fairlead_group_type", of(type="classic")): 0,
        ("fairlead_group_type", of(type="consumer")): 0,
        ("fairlead_group_classic_members", of()): 0,
        ("fairlead_group_assignment_epoch", of()): 1,
        ("fairlead_group_assignment_failures", of()): 0,
        ("fairlead_group_rebalances_total", of(cause="member-joined")): 3,
        ("fairlead_group_rebalances_total", of(cause="session-expired")): 1,
        ("fairlead_group_last_rebalance_timestamp_seconds", of()): 0,
        ("fairlead_log_end_offset", of(log="control")): 7,
        ("fairlead_log_end_offset", of(log="offsets")): 2,
        ("fairlead_log_size_bytes", of(log="control")): 4096,
        ("fairlead_log_size_bytes", of(log="offsets")): 512,
        ("fairlead_log_unknown_records", of()): 0,
        ("fairlead_connector_unplaceable_resources", of(connector="A")): 0,
        ("fairlead_connector_rows_in_total", of(connector="A")): 100,
        ("fairlead_connector_rows_out_total", of(connector="A")): 90,
        ("fairlead_connector_in_bytes_total", of(connector="A")): 1200,
        ("fairlead_connector_out_bytes_total", of(connector="A")): 900,
        ("fairlead_connector_batches_total", of(connector="A")): 4,
        ("fairlead_connector_unpublished_batches", of(connector="A")): 1,
        ("fairlead_connector_last_commit_timestamp_seconds", of(connector="A")): 1.5,
        ("fairlead_connector_oldest_commit_timestamp_seconds", of(connector="A")): 1.2,
        ("fairlead_connector_uncommitted_tasks", of(connector="A")): 1,
        ("fairlead_connector_lag_bytes", of(connector="A")): 300,
        ("fairlead_connector_lag_records", of(connector="A")): 5,
        ("fairlead_connector_restarts_total", of(connector="A")): 3,
        ("fairlead_worker_resources", of(worker="w1", kind="connector")): 1,
        ("fairlead_worker_resources", of(worker="w1", kind="task")): 2,
        ("fairlead_worker_losses_total", of(worker="w1", cause="process-ended")): 2,
        ("fairlead_worker_losses_total", of(worker="w1", cause="session-expired")): 0,
        ("fairlead_group_rebalance_seconds_count", of()): 2,
        ("fairlead_group_rebalance_seconds_sum", of()): 0.74,
        ("fairlead_group_move_seconds_count", of()): 1,
        ("fairlead_group_move_seconds_sum", of()): 0.25,
    }
    expected |= by_bound_and_state()
    for phase, value in {"plan": 1, "wait": 0, "run": 2.5, "commit": 0, "publish": 0}.items():
        expected["fairlead_connector_batch_seconds_total", of(connector="A", phase=phase)] = value
    for state, value in {**states, "stable": 1.0}.items():
        expected["fairlead_group_state", of(state=state)] = value
    for state, value in {**seats, "unassigned": 0.0, "stable": 1.0}.items():
        expected["fairlead_group_members", of(state=state)] = value
    for state in ("running", "unassigned"):
        expected["fairlead_connector_tasks", of(connector="A", state=state)] = 1
    for name, counts in kinds.items():
        for kind, count in zip(("connector", "task"), counts, strict=True):
            expected[f"fairlead_group_{name}_resources", of(kind=kind)] = count
    assert ours == expected


def test_a_classic_group_is_told_by_its_type_and_its_members_wait_for_their_leader() -> None:
    members = tuple(ClassicMember(name, 10_000, 60_000, ()) for name in "ab")
    joined = ClassicGroup(1, Cause(Why.MEMBER_JOINED, "b"), 1_000, "game", "chess", "a", members)
    group = Group("connect")
    for record, state in ((joined, "unassigned"), (replace(joined, is_synced=True), "stable")):
        evolve(group, record, group.end)
        told = samples(scrape([GroupFigures(group, {}, {}, {})])[0])
        assert told["fairlead_group_type", of(type="classic")] == 1
        assert told["fairlead_group_classic_members", of()] == 2
        seats = {key: value for key, value in told.items() if key[0] == "fairlead_group_members"}
        assert {key: value for key, value in seats.items() if value} == {
            ("fairlead_group_members", of(state=state)): 2
        }
        assert told["fairlead_group_last_rebalance_timestamp_seconds", of()] == 1
        assert told["fairlead_group_epoch", of()] == 1
        assert told["fairlead_group_assignment_epoch", of()] == (state == "stable")


def test_what_waits_or_has_failed_is_counted_by_who_can_mend_it() -> None:
    decider = Decider()
    decider.configure("A A-0 A-1 A-2 B B-0")
    decider.join("W1")
    decider.settle()
    told = {
        Resource("A"): (RunState.RUNNING, "outside: waiting: there is no topic t"),
        Resource("A", 0): (RunState.RUNNING, "outside: 127.0.0.1:9092: Connection refused"),
        Resource("A", 1): (RunState.FAILED, "config: source.topics: nonsense"),
        Resource("A", 2): (RunState.RUNNING, "at least 2 bad rows were left out: see below"),
        Resource("B", 0): (RunState.RUNNING, ""),
    }
    updates = [
        StatusUpdate(each, Token(1, 1), state, 0, why) for each, (state, why) in told.items()
    ]
    decider.command(ReportStatus("connect", "W1", tuple(updates)))
    found = samples(scrape([GroupFigures(decider.group, {}, {}, {})])[0])
    family = "fairlead_connector_hindered_resources"
    hindered = {key: value for key, value in found.items() if key[0] == family and value}
    assert hindered == {
        (family, of(connector="A", error="outside")): 2,
        (family, of(connector="A", error="config")): 1,
    }


def test_what_no_member_can_take_is_counted_by_connector() -> None:
    decider = Decider()
    decider.configure("A A-0 B")
    decider.join("W1")
    left_out = dict.fromkeys((Resource("A"), Resource("A", 0)), "needs tag gpu: nobody has it")
    made = Assignment({"W1": frozenset({Resource("B")})}, unplaceable=left_out)
    decider.install("W1", decider.prepare("W1"), made)
    told = samples(scrape([GroupFigures(decider.group, {}, {}, {})])[0])
    family = "fairlead_connector_unplaceable_resources"
    counts = {labels: count for (name, labels), count in told.items() if name == family}
    assert counts == {of(connector="A"): 2, of(connector="B"): 0}


def test_when_more_moves_are_due_is_measured_as_long_as_some_are_left() -> None:
    decider = Decider()
    decider.configure("A")
    decider.join("W1")
    made = Assignment({"W1": frozenset({Resource("A")})}, again_at_ms=30_000)
    decider.install("W1", decider.prepare("W1"), made)
    told = samples(scrape([GroupFigures(decider.group, {}, {}, {})])[0])
    assert told["fairlead_group_next_moves_timestamp_seconds", of()] == 30
    at_rest = samples(scrape([GroupFigures(Decider().group, {}, {}, {})])[0])
    assert ("fairlead_group_next_moves_timestamp_seconds", of()) not in at_rest


def test_requests_and_the_process_are_measured() -> None:
    told = samples(scrape([])[0])
    get = (("code", "200"), ("method", "GET"), ("route", "/connectors"))
    other = (("code", "404"), ("method", "other"), ("route", "unmatched"))
    assert told["fairlead_rest_requests_total", get] == 1
    assert told["fairlead_rest_requests_total", other] == 1
    bucket = "fairlead_rest_request_duration_seconds_bucket"
    labels = (("le", "0.005"), ("method", "GET"), ("route", "/connectors"))
    assert told[bucket, labels] == 1
    assert told["fairlead_build_info", (("version", "1.2.3"),)] == 1
    assert told["process_resident_memory_bytes", ()] > 0


def test_open_metrics_are_written_for_those_who_ask() -> None:
    text, content_type = scrape([busy()], "application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert {family.name for family in parse_open(text)} > {"fairlead_group_rebalances"}  # type: ignore[no-untyped-call]


def test_open_metrics_name_the_epoch_of_a_rebalance_and_of_a_move() -> None:
    text, _ = scrape([busy()], "application/openmetrics-text; version=1.0.0")
    families: Any = parse_open(text)  # type: ignore[no-untyped-call]
    named = {
        (sample.name, sample.labels["le"]): (sample.exemplar.labels, sample.exemplar.value)
        for family in families
        for sample in family.samples
        if sample.exemplar
    }
    assert named == {
        ("fairlead_group_rebalance_seconds_bucket", "0.05"): ({"epoch": "7"}, 0.04),
        ("fairlead_group_rebalance_seconds_bucket", "1.0"): ({"epoch": "7"}, 0.7),
        ("fairlead_group_move_seconds_bucket", "0.25"): ({"epoch": "7"}, 0.25),
    }
    assert "# {" not in scrape([busy()])[0], "the other format has no exemplars"
    traced = Exposition("1.2.3", RequestMetrics(), traced_cluster="a-cluster")
    text = traced.write("application/openmetrics-text; version=1.0.0", [busy()])[0].decode()
    trace_id = epoch_context("a-cluster", "connect", 7).trace_hex
    assert text.count(f'# {{epoch="7",trace_id="{trace_id}"}}') == 3


@pytest.mark.skipif(which("promtool") is None, reason="promtool is not installed")
def test_promtool_finds_nothing_to_complain_about() -> None:
    text, _ = scrape([busy()])
    checked = run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
