"""Whatever an assignor raises or returns, workers get plain values, or an error in words."""

import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from local_assignors.conftest import Installs
from local_assignors.packages import ASSIGNOR

from fairlead.actors.assignors.deferred import assign
from fairlead.actors.assignors.interface import MemberAssignment, Worker
from fairlead.actors.messages.assignors import Assigned, Introduced
from fairlead.actors.messages.computing import MemberView, Snapshot
from fairlead.events.model import NOTHING, Assignor, Resource
from fairlead.runtime.assignors.finding import AssignorRefusedError
from fairlead.runtime.assignors.panel import Panel

MINE = "mine = shop_rules:Mine"
WORK = frozenset({Resource("a"), Resource("a", 0)})
MEMBER = MemberView("m", 1, None, "here/w1", None, 0, 0, b"", NOTHING, NOTHING, worker="w1")
W1 = Worker("w1", "north", frozenset({"gpu"}), 2)


def snapshot(assignor: str = "mine") -> Snapshot:
    """A group of one."""
    return Snapshot(4, 3, assignor, b"", WORK, {"m": MEMBER}, (), {}, NOTHING, 0)


def body(**methods: str) -> str:
    """The source of an assignor some of whose methods do just this."""
    source = ASSIGNOR
    for name, does in methods.items():
        head = source.index("\n", source.index(f"def {name}("))
        source = f"{source[:head]}\n        {does}{source[head:]}"
    return source


def panel(installed: Installs, source: str = ASSIGNOR, conf: Mapping[str, str] = {}) -> Panel:
    """A panel of one's own assignor and the built-in one."""
    installed(source, MINE)
    return Panel(("mine", "deferred"), conf)


def test_a_member_is_introduced_in_the_order_of_preference(installed: Installs) -> None:
    said = panel(installed).introduce("m", W1, 7)
    content = b'{"capacity":2,"tags":["gpu"]}'
    mine = Assignor("mine", 0, 2, 0, 0, content)
    assert said == Introduced(7, (mine, Assignor("deferred", metadata=content)))


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (shop_rules.py, line 13)"),
        ("import sys; sys.exit('bye')", "SystemExit: bye (shop_rules.py, line 13)"),
        ("return b'2'", "WrongResultError: metadata returned of type bytes: return a Metadata"),
        ("return Metadata('1')", "WrongResultError: version is of type str"),
        ("return Metadata(content='1')", "WrongResultError: content is of type str"),
        ("return Metadata(3)", "WrongResultError: assignor 'mine' writes version 3 outside [0, 2]"),
        ("return Metadata(reason=-1)", "WrongResultError: assignor 'mine' has a number outside"),
        ("return Metadata(content=bytes(1 << 17))", "WrongResultError: assignor 'mine' has meta"),
    ],
)
def test_what_says_nothing_sound_of_a_worker_is_left_out(
    installed: Installs, does: str, why: str
) -> None:
    said = panel(installed, body(metadata=does)).introduce("m", W1, 1)
    assert [each.name for each in said.assignors] == ["deferred"]
    (error,) = said.errors
    assert error.startswith(f"assignor mine is left out: {why}")


def test_an_assignment_is_that_of_the_assignor_that_the_snapshot_names(
    installed: Installs,
) -> None:
    found = panel(installed, body(assign="1 / 0"))
    assert found.assign("m", snapshot("deferred")) == Assigned(4, assign(snapshot("deferred")))
    assert found.assign("m", snapshot("others")) == Assigned(
        4, None, "there is no assignor 'others' here: only mine, deferred"
    )


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("raise LookupError('no such worker')", "LookupError: no such worker (shop_rules.py"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (shop_rules.py, line 15)"),
        ("return self.assign(group)", "RecursionError: maximum recursion depth exceeded"),
        ("return None", "WrongResultError: assign returned None: return an Assignment"),
        ("return Assignment([])", "WrongResultError: members is of type list: it must be a"),
        ("return Assignment({1: ()})", "WrongResultError: a key of members is of type int"),
        ("return Assignment({'m': 'a-0'})", "WrongResultError: members: the share of m is of type"),
        (
            "return Assignment({'m': {'a-0'}})",
            "WrongResultError: members: the share of m has a-0, of type str: it must be a Resource",
        ),
        (
            "return Assignment({'m': [Resource('a', 0)] * 2})",
            "WrongResultError: members: the share of m has a-0 twice",
        ),
        (
            "return Assignment({'m': {Resource('a', '0')}})",
            "WrongResultError: members: the share of m is of type str: it must be a whole number",
        ),
        (
            "return Assignment({}, {Resource('a'): 0.5})",
            "WrongResultError: parked: the deadline of a",
        ),
        (
            "return Assignment({}, {}, {Resource('a'): None})",
            "WrongResultError: unplaceable: the reason of a is None: it must be a text",
        ),
        ("return Assignment({}, metadata='x')", "WrongResultError: metadata is of type str"),
        ("return Assignment({}, version=True)", "WrongResultError: version is of type bool"),
    ],
)
def test_what_is_no_assignment_is_an_error_that_names_what_it_was(
    installed: Installs, does: str, why: str
) -> None:
    answer = panel(installed, body(assign=does)).assign("m", snapshot())
    assert (answer.group_epoch, answer.assignment) == (4, None)
    assert answer.error.startswith(f"assignor mine: {why}")


def test_an_error_that_can_not_even_be_said_is_told_by_its_type(installed: Installs) -> None:
    source = body(assign="raise Mute") + "\nclass Mute(Exception):\n    __str__ = None\n"
    answer = panel(installed, source).assign("m", snapshot())
    assert answer.error == "assignor mine: Mute: (it does not say) (shop_rules.py, line 15)"


def test_workers_get_plain_values_whatever_classes_an_assignor_has(installed: Installs) -> None:
    source = body(assign="return Own({Text('m'): Many(group.configured)}, version=Number(3))")
    source += """
class Own(Assignment): pass
class Text(str): pass
class Number(int): pass
class Many(list): pass
"""
    answer = panel(installed, source).assign("m", snapshot())
    assert answer.assignment is not None
    assert (answer.assignment.members, answer.assignment.version) == ({"m": WORK}, 3)
    assert b"shop_rules" not in pickle.dumps(answer)


def test_each_worker_has_assignors_of_its_own_and_a_new_process_new_ones(
    installed: Installs,
) -> None:
    source = body(
        __init__="self.given = []",
        on_assignment="self.given.append(assignment)",
        assign="raise LookupError([each.member_id for each in self.given])",
    )
    found = panel(installed, source)

    def given(member_id: str) -> str:
        return found.assign(member_id, snapshot()).error.partition(" (")[0]

    for member_id, worker in (("m", "w1"), ("n", "w2")):
        found.introduce(member_id, Worker(worker), 1)
        found.given("mine", MemberAssignment(member_id, WORK))
    assert [given("m"), given("n")] == [
        "assignor mine: LookupError: ['m']",
        "assignor mine: LookupError: ['n']",
    ]
    found.introduce("m2", Worker("w1"), 1)
    assert [given("m2"), given("m"), given("n")] == [
        "assignor mine: LookupError: []",
        "assignor mine: LookupError: []",
        "assignor mine: LookupError: ['n']",
    ]


def test_an_assignor_that_fails_on_what_its_worker_was_given_is_asked_on(
    installed: Installs,
) -> None:
    found = panel(installed, body(on_assignment="1 / 0"))
    found.introduce("m", W1, 1)
    found.given("mine", MemberAssignment("m"))
    found.given("others", MemberAssignment("m"))
    assert found.assign("m", snapshot()).assignment is not None


def test_what_can_not_be_made_is_refused_before_anybody_asks(installed: Installs) -> None:
    with pytest.raises(AssignorRefusedError, match="can not be made"):
        panel(installed, body(__init__="1 / 0"))


def test_what_can_be_made_once_only_is_an_error_in_the_answer(installed: Installs) -> None:
    source = "made = []\n" + body(__init__="made.append(1); assert len(made) < 2")
    found = panel(installed, source)
    said: Any = found.introduce("m", W1, 2)
    assert (said.number, said.assignors, len(said.errors)) == (2, (), 1)
    assert found.assign("m", snapshot()).error.startswith("assignor mine: AssignorRefusedError")
