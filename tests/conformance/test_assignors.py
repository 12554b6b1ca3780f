"""The conformance data of Connect's assignors against the classic ones, item by item."""
# pyright: basic

from dataclasses import replace
from typing import Any

from fairlead.actors.assignors.classic.incremental import (
    LeaderMemory,
    RoundTime,
    backoff_ms,
    handle_lost,
)
from fairlead.actors.assignors.classic.loads import Loads, add_loads, deal_eagerly, hand_out
from fairlead.actors.assignors.classic.protocol import (
    MODES,
    VERSIONS,
    AssignmentError,
    ReceivedAssignment,
    is_behind,
    offer_protocols,
    react,
    stop_to_rejoin,
)
from fairlead.events.model import Resource
from fairlead_tests.assignors.configured import resources_of
from fairlead_tests.classic.elections import elected
from fairlead_tests.conformance.assignor_cases import EAGER_ORDER
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.leading import assigned_at
from fairlead_tests.conformance.rounds import (
    START_MS,
    Workers,
    read_item,
    read_load,
    spell_increments,
    spell_load,
)
from fairlead_tests.conformance.stage import REMARKS


def test_incremental_rounds(incremental_rounds: Case) -> None:
    told = incremental_rounds.told
    workers = Workers(told["initial"], told["max_delay_ms"])
    for number, each in enumerate(told["rounds"]):
        increments = workers.play(each)
        seen = workers.seen(increments)
        expected = {key: value for key, value in each["expect"].items() if key not in REMARKS}
        if "return_candidates" in expected:
            expected["return_candidates"] = sorted(expected["return_candidates"])
        assert {key: seen.get(key, "not seen") for key in expected} == expected, f"round {number}"
        if "exact_sorted_worker_order" in each:
            exact = {
                worker: {what: sorted(names) for what, names in told_of.items()}
                for worker, told_of in each["exact_sorted_worker_order"].items()
            }
            assert spell_increments(increments) == exact, f"round {number}"


def test_round_robin(round_robin: Case) -> None:
    told = round_robin.told
    loads = {worker: read_load(load) for worker, load in told["workers"].items()}
    items = read_load({"connectors": told["new_connectors"], "tasks": told["new_tasks"]})
    found = add_loads(loads, hand_out(items, loads))
    assert {worker: spell_load(load) for worker, load in found.items()} == told["expect"]


def test_lost_handling(lost_handling: Case) -> None:
    told = lost_handling.told
    memory, now_ms = LeaderMemory(), START_MS
    for number, step in enumerate(told["steps"]):
        now_ms += step["advance_clock_ms"]
        if "members_of_previous_round" in step:
            memory = replace(memory, members=frozenset(step["members_of_previous_round"]))
        lost, clock = frozenset(read_load(step["lost"])), RoundTime(now_ms, told["max_delay_ms"])
        loads = _read_sizes(step["workers"], told["base_loads"])
        handled = handle_lost(memory, lost, loads, clock)
        memory = replace(memory, wait=handled.wait, revoked=handled.revoked)
        due_ms = handled.wait.due_ms
        expected = dict(step["expect"])
        expected["return_candidates"] = sorted(expected["return_candidates"])
        assert {
            "delay_ms": handled.delay_ms,
            "scheduled_in_ms": 0 if due_ms is None else due_ms - now_ms,
            "return_candidates": sorted(handled.wait.candidates),
            "treated_as_new": spell_load(sorted(handled.as_new)),
            "handed_to_candidates": {key: spell_load(load) for key, load in handled.handed.items()},
        } == expected, f"step {number}"


def _read_sizes(sizes: dict[str, Any], base_loads: dict[str, Any]) -> Loads:
    """Read who has something and who has nothing; all that counts here is which of the two."""
    stand_in = {"connectors": ["other"]}
    return {
        worker: read_load(base_loads.get(worker, stand_in) if any(size.values()) else {})
        for worker, size in sizes.items()
    }


def test_eager(eager: Case) -> None:
    told = eager.told
    configured = resources_of(told["connectors"])
    found = deal_eagerly(configured, told["workers"])
    assert {worker: spell_load(load) for worker, load in found.items()} == told["expect"]


def test_config_offset(config_offset: Case) -> None:
    told = config_offset.told
    members = {str(place): offset for place, offset in enumerate(told["member_offsets"])}
    is_stale = told["leader_offset"] < max(members.values())
    offset = told["leader_fresh_offset" if is_stale else "leader_offset"]
    made = assigned_at(offset, members)
    assert made.keys() == members.keys()
    for each in made.values():
        found = {
            "error": AssignmentError(each.error).name,
            "config_offset": each.config_offset,
            "compute": each.error == AssignmentError.NO_ERROR,
        }
        assert found == {key: told["expect"][key] for key in found}
        assert bool(each.assigned) is found["compute"]


def test_selection(selection: Case) -> None:
    assert elected(selection.told["members"]) == selection.told["expect"]


def test_offered_by_worker(offered_by_worker: Case) -> None:
    assert offer_protocols(offered_by_worker.told["mode"]) == offered_by_worker.told["expect"]


def test_subprotocols(subprotocols: Case) -> None:
    assert VERSIONS[subprotocols.told["name"]] == subprotocols.told["version"]


def test_error_codes(error_codes: Case) -> None:
    assert AssignmentError[error_codes.told["name"]] == error_codes.told["expect"]


def test_backoff_sequence(backoff_sequence: Case) -> None:
    told = backoff_sequence.told
    attempts = range(1, len(told["expect"]) + 1)
    assert [backoff_ms(each, told["max_delay_ms"]) for each in attempts] == told["expect"]


def test_worker_side(worker_side: Case) -> None:
    told = worker_side.told
    if "assignment" not in told:
        _check_rejoining(told)
    elif "if_read_fails" in told["expect"]:
        _check_unsynced(told)
    else:
        _check_reaction(told)


def _check_rejoining(told: dict[str, Any]) -> None:
    """Check what is stopped before a worker rejoins; of the new assignment all is started."""
    running = _read_mixed(told["given"]["running"])
    stopped = stop_to_rejoin(VERSIONS[MODES[told["protocol"]]], running)
    reaction = react(ReceivedAssignment(running), (), 0)
    found = EAGER_ORDER if (stopped, reaction.start) == (running, running) else []
    assert (found, reaction.stop) == (told["expect"]["order"], [])


def _check_unsynced(told: dict[str, Any]) -> None:
    """Check that configs are read before work is started; what if they cannot be is not played."""
    local = told["given"]["local_config_offset"]
    received = ReceivedAssignment(
        _read_mixed(["a"]), config_offset=told["assignment"]["config_offset"]
    )
    assert is_behind(received.config_offset, local)
    assert (
        react(received, (), local).start,
        react(received, (), received.config_offset).start,
    ) == (
        (),
        received.assigned,
    )


def _check_reaction(told: dict[str, Any]) -> None:
    assignment = told["assignment"]
    given, expected = told.get("given") or {}, told["expect"]
    received = ReceivedAssignment(
        assigned=_read_mixed(assignment.get("assigned")),
        revoked=_read_mixed(assignment.get("revoked")),
        delay_ms=assignment.get("delay_ms", 0),
        config_offset=assignment.get("config_offset", 0),
        error=AssignmentError[assignment.get("error", "NO_ERROR")],
    )
    local_offset = given.get("local_config_offset_after_read", received.config_offset)
    reaction = react(received, _read_mixed(given.get("running")), local_offset)
    steps = [f"stop {each}" for each in reaction.stop] + [
        f"start {each}" for each in reaction.start
    ]
    found = {
        "running": [str(each) for each in reaction.has],
        "revoked": [str(each) for each in reaction.stop],
        "rejoin": _spell_rejoin(reaction.rejoin_in_ms),
        "order": steps,
    }
    wanted = {key: expected[key] for key in found if key in expected}
    if "order" in wanted:
        wanted["order"] = [each for each in wanted["order"] if each.startswith(("stop ", "start "))]
    assert {key: found[key] for key in wanted} == wanted


def _read_mixed(names: list[str] | None) -> list[Resource]:
    return [read_item(name) for name in names or []]


def _spell_rejoin(rejoin_in_ms: int | None) -> str:
    if rejoin_in_ms is None:
        return "no"
    return f"after {rejoin_in_ms} ms" if rejoin_in_ms else "immediately"
