"""The conformance data against the real rules: `reconcile`, and `decide` on a real group."""
# pyright: basic

from fairlead.actors.group.members.reconcile import Goal, UnknownStateError, reconcile
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.stage import Stage, compare, read, read_current, spell_current


def test_builder_case(builder_cases: Case) -> None:
    told = builder_cases.told
    owner_epoch = told.get("owner_epoch") or {}
    current = read_current("m", told["member"], owner_epoch)
    mine = current.assigned.keys() | current.pending.keys()
    owner = {held: "m" if held in mine else "another" for held in read(owner_epoch)}
    goal = Goal(told["target"]["epoch"], read(told["target"].get("items")), owner)
    owned = told.get("owned")
    try:
        after = reconcile(current, goal, None if owned is None else read(owned))
    except UnknownStateError:
        found: dict[str, object] = {"error": "FENCED_MEMBER_EPOCH"}
    else:
        found = {**spell_current(after), "record_written": after is not current}
    compare(found, told.get("newer_upstream_expect") or told["expect"])


def test_sequence(sequences: Case) -> None:
    initial = sequences.told.get("initial") or {}
    stage = Stage(initial.get("group_epoch") or 0, initial.get("members") or {})
    for step in sequences.told["steps"]:
        found = stage.play(step)
        compare(found, step.get("newer_upstream_expect") or step.get("expect") or {})
        stage.decider.witness.compacted(stage.decider.group)


def test_epoch_validation(epoch_validation: Case) -> None:
    told = epoch_validation.told
    member = {"epoch": 100, "previous_epoch": 99, "assigned": ["A-1", "A-2", "A-3"]}
    stage = Stage(100, {"m1": member | (told.get("member") or {})})
    before = stage.decider.current("m1")
    received, owned = told["received"], told.get("owned")
    found = stage.play({"op": "heartbeat", "member": "m1", "epoch": received, "owned": owned})
    compare(found, told["expect"])
    assert stage.decider.current("m1") == before
