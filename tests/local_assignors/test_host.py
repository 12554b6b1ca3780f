"""Whatever an assignor raises or returns, workers get plain values, or an error in words."""

import pickle
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from local_assignors.conftest import Installs

from fairlead.actors.assignors.built_in.counting import assign_deferred as assign
from fairlead.actors.group.computing.install import flaw_in
from fairlead.actors.messages.assignors import (
    ComputeAssignmentReply,
    DescribeAssignorsReply,
    MemberAssignment,
    Worker,
)
from fairlead.actors.messages.computing import Assignment, MemberView, Snapshot
from fairlead.events.model import NOTHING, AssignorData, ClientAssignor, Resource
from fairlead.runtime.node.assignors.discovery import AssignorRefusedError
from fairlead.runtime.node.assignors.host import AssignorHost
from fairlead_tests.local_assignors.packages import ASSIGNOR

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


def host(installed: Installs, source: str = ASSIGNOR, conf: Mapping[str, str] = {}) -> AssignorHost:
    """A host of one's own assignor and the built-in one."""
    installed(source, MINE)
    return AssignorHost(("mine", "deferred"), conf)


def test_a_member_is_introduced_in_the_order_of_preference(installed: Installs) -> None:
    said = host(installed).describe_assignors("m", W1, 7)
    content = b'{"capacity":2,"tags":["gpu"]}'
    mine = ClientAssignor("mine", 0, 2, 0, 0, content)
    assert said == DescribeAssignorsReply(7, (mine, ClientAssignor("deferred", metadata=content)))


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero (shop_rules.py, line 11)"),
        ("import sys; sys.exit('bye')", "SystemExit: bye (shop_rules.py, line 11)"),
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
    said = host(installed, body(metadata=does)).describe_assignors("m", W1, 1)
    assert [each.name for each in said.assignors] == ["deferred"]
    (error,) = said.errors
    assert error.startswith(f"assignor mine said nothing: {why}")


def test_an_assignment_is_that_of_the_assignor_that_the_snapshot_names(
    installed: Installs,
) -> None:
    found = host(installed, body(assign="1 / 0"))
    assert found.assign("m", snapshot("deferred")) == ComputeAssignmentReply(
        4, assign(snapshot("deferred"))
    )
    assert found.assign("m", snapshot("others")) == ComputeAssignmentReply(
        4, None, "there is no assignor 'others' here: only mine, deferred"
    )


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("raise LookupError('no such worker')", "LookupError: no such worker (shop_rules.py"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt (shop_rules.py, line 13)"),
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
        ("return Assignment({}, version=2**70)", "WrongResultError: version is beyond 64 bit"),
        (
            "return Assignment({}, again_at_ms=-(10**5000))",
            "WrongResultError: again_at_ms is beyond 64 bit",
        ),
        (
            "return Assignment({}, {Resource('a'): 2**70})",
            "WrongResultError: parked: the deadline of a is beyond 64 bit",
        ),
        (
            "return Assignment({}, {}, {Resource('a'): 'x' * 32_001})",
            "WrongResultError: unplaceable: the reason of a is longer than 32000 characters",
        ),
        (
            "return Assignment({'m': frozenset({Resource('a', 10**5000)})})",
            "WrongResultError: members: the share of m is beyond 64 bit",
        ),
        (
            "return Assignment({}, {}, {Resource('a'): '\\ud800'})",
            "WrongResultError: unplaceable: the reason of a holds a lone surrogate",
        ),
    ],
)
def test_what_is_no_assignment_is_an_error_that_names_what_it_was(
    installed: Installs, does: str, why: str
) -> None:
    answer = host(installed, body(assign=does)).assign("m", snapshot())
    assert (answer.group_epoch, answer.assignment) == (4, None)
    assert answer.error.startswith(f"assignor mine: {why}")


def test_an_error_that_can_not_even_be_said_is_told_by_its_type(installed: Installs) -> None:
    source = body(assign="raise Mute") + "\nclass Mute(Exception):\n    __str__ = None\n"
    answer = host(installed, source).assign("m", snapshot())
    assert answer.error == "assignor mine: Mute: (no message) (shop_rules.py, line 13)"


@pytest.mark.parametrize(
    ("does", "why"),
    [
        ("raise Loud", "assignor mine: Loud: x (shop_rules.py, line 13)"),
        ("raise Ends", "assignor mine: Ends: (no message) (shop_rules.py, line 13)"),
        ("raise Own", "assignor mine: Own: own (shop_rules.py, line 13)"),
        ("raise Nameless", "assignor mine: an error that cannot be described"),
        ("raise Traceless", "assignor mine: an error that cannot be described"),
    ],
)
def test_no_error_however_made_gets_any_further(installed: Installs, does: str, why: str) -> None:
    source = """
class Text(str):
    def __format__(self, spec): raise RuntimeError
    def __bool__(self): raise RuntimeError
class Loud(Exception):
    def __str__(self): return Text("x")
class Ends(Exception):
    def __str__(self): raise SystemExit(3)
class Own(BaseException):
    def __str__(self): return "own"
class Unnamed(type):
    @property
    def __name__(self): raise RuntimeError
class Nameless(Exception, metaclass=Unnamed): pass
class Traceless(Exception):
    def __getattribute__(self, name): raise SystemExit(3)
"""
    found = host(installed, body(assign=does) + source)
    assert found.assign("m", snapshot()) == ComputeAssignmentReply(4, None, why)


def test_what_fails_the_same_way_each_time_is_logged_once_and_never_at_length(
    installed: Installs, caplog: pytest.LogCaptureFixture
) -> None:
    found = host(installed, body(metadata="raise LookupError('x' * 10_000_000)"))
    for number in range(3):
        found.describe_assignors("m", W1, number)
    (logged,) = caplog.messages
    assert logged.startswith("assignor mine says nothing of w1\nTraceback (most recent call last)")
    assert len(logged) < 10_000


TOO_MUCH = 1 << 62


def test_who_wanted_more_memory_than_there_is_is_remembered(installed: Installs) -> None:
    found = host(installed, body(assign="raise MemoryError", metadata="1 / 0"))
    found.describe_assignors("m", W1, 1)
    assert not found.is_full(TOO_MUCH)
    found.assign("m", snapshot())
    assert found.is_full(TOO_MUCH)
    assert not found.is_full(TOO_MUCH), "it has let go of something since, or it wants more again"


def test_workers_get_plain_values_whatever_classes_an_assignor_has(installed: Installs) -> None:
    source = body(assign="return Own({Text('m'): Many(group.configured)}, version=Number(3))")
    source += """
class Own(Assignment): pass
class Text(str): pass
class Number(int): pass
class Many(list): pass
"""
    answer = host(installed, source).assign("m", snapshot())
    assert answer.assignment is not None
    assert (answer.assignment.members, answer.assignment.version) == ({"m": WORK}, 3)
    assert b"shop_rules" not in pickle.dumps(answer)


def test_a_resource_that_was_made_too_long_is_cut_to_what_it_is(installed: Installs) -> None:
    longer = "frozenset(tuple.__new__(Resource, (*each, 2)) for each in group.configured)"
    source = body(assign=f"return Assignment({{'m': {longer}}})")
    answer = host(installed, source).assign("m", snapshot())
    assert pickle.loads(pickle.dumps(answer)) == ComputeAssignmentReply(4, Assignment({"m": WORK}))


def test_each_worker_has_assignors_of_its_own_and_a_new_process_new_ones(
    installed: Installs,
) -> None:
    source = body(
        __init__="self.given = []",
        on_assignment="self.given.append(assignment)",
        assign="raise LookupError([each.member_id for each in self.given])",
    )
    found = host(installed, source)

    def given(member_id: str) -> str:
        return found.assign(member_id, snapshot()).error.partition(" (")[0]

    for member_id, worker in (("m", "w1"), ("n", "w2")):
        found.describe_assignors(member_id, Worker(worker), 1)
        found.notify("mine", MemberAssignment(member_id, WORK))
    assert [given("m"), given("n")] == [
        "assignor mine: LookupError: ['m']",
        "assignor mine: LookupError: ['n']",
    ]
    found.describe_assignors("m2", Worker("w1"), 1)
    assert [given("m2"), given("m"), given("n")] == [
        "assignor mine: LookupError: []",
        "assignor mine: LookupError: []",
        "assignor mine: LookupError: ['n']",
    ]


def test_an_assignor_that_fails_on_what_its_worker_was_given_is_asked_on(
    installed: Installs,
) -> None:
    found = host(installed, body(on_assignment="1 / 0"))
    found.describe_assignors("m", W1, 1)
    found.notify("mine", MemberAssignment("m"))
    found.notify("others", MemberAssignment("m"))
    assert found.assign("m", snapshot()).assignment is not None


def test_what_can_not_be_made_is_refused_before_anybody_asks(installed: Installs) -> None:
    with pytest.raises(AssignorRefusedError, match="cannot be created"):
        host(installed, body(__init__="1 / 0"))


def test_what_can_be_made_once_only_is_an_error_in_the_answer(installed: Installs) -> None:
    source = "made = []\n" + body(__init__="made.append(1); assert len(made) < 2")
    found = host(installed, source)
    assert found.describe_assignors("m", W1, 1).errors == ()
    said: Any = found.describe_assignors("n", Worker("w2"), 2)
    assert (said.number, said.assignors, len(said.errors)) == (2, (), 1)
    assert found.assign("n", snapshot()).error.startswith("assignor mine: AssignorRefusedError")


def test_no_more_are_made_than_there_are_workers_and_none_is_kept_for_who_is_gone(
    installed: Installs,
) -> None:
    source = """
import weakref
alive = weakref.WeakSet()
""" + body(__init__="alive.add(self)", metadata="return Metadata(reason=len(alive))")
    found = host(installed, source)

    def alive(member_id: str, worker: str) -> int:
        return found.describe_assignors(member_id, Worker(worker), 1).assignors[0].reason

    assert [alive(f"m{each}", f"w{each}") for each in (1, 2, 3)] == [1, 2, 3]
    assert alive("n1", "w1") == 3
    found.forget("w1")
    found.forget("w1")
    found.forget("w2")
    assert alive("m3", "w3") == 1


def test_what_is_being_called_is_told_for_as_long_as_it_takes(installed: Installs) -> None:
    told: list[str] = []

    @contextmanager
    def doing(what: str) -> Generator[None]:
        told.append(what)
        yield
        told.append("")

    installed(body(assign="raise LookupError"), MINE)
    found = AssignorHost(("mine",), {}, doing)
    found.describe_assignors("m", W1, 1)
    found.notify("mine", MemberAssignment("m"))
    assert told[::2] == [
        "loading mine",
        "making mine",
        "calling mine.metadata",
        "calling mine.on_assignment",
    ]
    assert set(told[1::2]) == {""}


def test_what_the_group_would_refuse_is_refused_here_in_its_words_and_says_whose_fault_it_is(
    installed: Installs,
) -> None:
    does = "return Assignment({'m': frozenset({Resource('a', 7)})})"
    answer = host(installed, body(assign=does)).assign("m", snapshot())
    made = Assignment({"m": frozenset({Resource("a", 7)})})
    assert answer == ComputeAssignmentReply(4, None, f"assignor mine: {flaw_in(made, snapshot())}")
    assert answer.error == "assignor mine: a-7 is not configured"


def test_what_it_says_to_single_members_is_in_the_answer(installed: Installs) -> None:
    said = (
        "return Assignment({'m': group.configured}, data={'m': AssignorData(3, bytearray(b'x'))})"
    )
    source = "from fairlead.sdk import AssignorData\n" + body(assign=said)
    answer = host(installed, source).assign("m", snapshot())
    assert answer.error == ""
    assert answer.assignment is not None
    assert answer.assignment.data == {"m": AssignorData(3, b"x")}
