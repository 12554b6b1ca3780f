"""Since when workers of Connect hold what their leader gave them, and who may commit by it."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.messages.classic import JoinGroupReply, SyncGroupReply
from fairlead.actors.messages.errors import Error
from fairlead.events.evolve import evolve
from fairlead.events.group import token_of
from fairlead.events.model import Resource, TaskConfig, Token
from fairlead.events.records import TaskConfigs
from fairlead.projections.views import assigned_resources, sorted_members, worker_of
from fairlead_tests.classic.driver import BY_GRANTS, ClassicDriver
from fairlead_tests.classic.workers import as_worker, told
from fairlead_tests.decider import resource

A, A0, A1 = map(resource, ("a", "a-0", "a-1"))


class Crew(ClassicDriver):
    """Two workers of Connect in one group."""

    mode = "sessioned"

    def joins(self, *runs: str, member_id: str = "", instance_id: str | None = None) -> None:
        """Let a worker join that runs this."""
        said = as_worker(f"http://{member_id}/", *runs, mode=self.mode)
        self.ask(self.joining(member_id, instance_id, **{**said, "asks_for_id": False}))

    def syncs(self, **shares: bytes) -> SyncGroupReply:
        """Let the leader assign; `c-u1` and its like are spelled with an underscore."""
        assert self.group.classic is not None
        assignments = {name.replace("_", "-"): share for name, share in shares.items()}
        reply = self.asks(self.syncing(self.group.classic.leader, assignments))
        assert isinstance(reply, SyncGroupReply)
        return reply

    def held(self) -> dict[str, tuple[Mapping[Resource, int], Mapping[Resource, int]]]:
        """Return what each has, and is to give up."""
        found = self.group.classic_members.values()
        return {each.member_id: (each.current.assigned, each.current.pending) for each in found}


def crew(mode: str = "sessioned") -> Crew:
    """Return two workers at generation 2, of which the first has run all since generation 1."""
    two = Crew()
    two.mode = mode
    two.joins()
    two.syncs(c_u1=told(["a", "a-0", "a-1"], mode=mode))
    two.joins()
    two.joins("a", "a-0", "a-1", member_id="c-u1")
    return two


def test_what_a_worker_goes_on_with_it_holds_since_it_was_given() -> None:
    two = crew()
    two.syncs(c_u1=told(taken=["a-1"]), c_u3=told())
    assert two.held() == {"c-u1": ({A: 1, A0: 1}, {A1: 1}), "c-u3": ({}, {})}
    two.joins("a", "a-0", member_id="c-u1")
    two.joins(member_id="c-u3")
    two.syncs(c_u1=told(), c_u3=told(["a-1"]))
    assert two.held() == {"c-u1": ({A: 1, A0: 1}, {}), "c-u3": ({A1: 3}, {})}


def test_what_is_to_be_given_up_may_be_committed_until_its_worker_joins_without_it() -> None:
    two = crew()
    evolve(two.group, TaskConfigs("a", 4, (TaskConfig({}, 4), TaskConfig({}, 4))), 9)
    two.syncs(c_u1=told(taken=["a-1"]), c_u3=told())
    assert token_of(two.group, "c-u1", A1) == Token(1, 4)
    two.joins("a", "a-0", member_id="c-u1")
    two.joins(member_id="c-u3")
    two.syncs(c_u1=told(), c_u3=told(["a-1"]))
    assert [token_of(two.group, each, A1) for each in ("c-u1", "c-u3")] == [None, Token(3, 4)]


def test_what_is_to_be_given_up_is_granted_to_nobody_else_in_the_same_generation() -> None:
    two = crew()
    two.syncs(c_u1=told(taken=["a-1"]), c_u3=told(["a-1"]))
    assert two.held() == {"c-u1": ({A: 1, A0: 1}, {A1: 1}), "c-u3": ({}, {})}
    two.joins("a", "a-0", member_id="c-u1")
    two.joins("a-1", member_id="c-u3")
    two.syncs(c_u1=told(), c_u3=told())
    assert two.held() == {"c-u1": ({A: 1, A0: 1}, {}), "c-u3": ({A1: 3}, {})}


def test_what_is_to_be_given_up_stays_with_the_worker_that_names_it_still() -> None:
    two = crew()
    two.syncs(c_u1=told(taken=["a-1"]), c_u3=told())
    two.joins("a-1", member_id="c-u3")  # joins in the name of the other's work
    two.joins("a", "a-0", "a-1", member_id="c-u1")
    two.syncs(c_u1=told(), c_u3=told())
    assert two.held() == {"c-u1": ({A: 1, A0: 1, A1: 1}, {}), "c-u3": ({}, {})}


def test_in_the_eager_protocol_all_is_given_anew() -> None:
    two = crew("eager")
    two.syncs(
        c_u1=told(["a", "a-0"], mode="eager"),
        c_u3=told(["a-1"], mode="eager"),
    )
    assert two.held() == {"c-u1": ({A: 2, A0: 2}, {}), "c-u3": ({A1: 2}, {})}


def test_what_runs_on_as_all_begin_to_speak_eagerly_is_nobodys_until_the_next_round() -> None:
    two = Crew(settings=BY_GRANTS)
    two.joins()
    two.syncs(c_u1=told(["a", "a-0", "a-1"]))
    two.mode = "eager"
    two.joins()
    two.mode = "sessioned"
    two.joins("a", "a-0", "a-1", member_id="c-u1")
    assert two.group.classic is not None
    assert two.group.classic.protocol == "default"
    two.syncs(c_u1=told(["a"], mode="eager"), c_u3=told(["a-0", "a-1"], mode="eager"))
    assert two.held() == {"c-u1": ({A: 2}, {A0: 1, A1: 1}), "c-u3": ({}, {})}
    two.passes(1)
    assert two.beat("c-u1") == "NONE", "the other has to hear first that all speak eagerly"
    two.asks(two.syncing("c-u3"))
    two.passes(1)
    assert two.beat("c-u1") == "REBALANCE_IN_PROGRESS"
    two.joins(member_id="c-u1")
    two.mode = "eager"
    two.joins(member_id="c-u3")
    two.syncs(c_u1=told(["a"], mode="eager"), c_u3=told(["a-0", "a-1"], mode="eager"))
    assert two.held() == {"c-u1": ({A: 3}, {}), "c-u3": ({A0: 3, A1: 3}, {})}


def test_after_a_restart_that_round_follows_at_once() -> None:
    two = Crew(settings=BY_GRANTS)
    two.joins()
    two.syncs(c_u1=told(["a"]))
    two.mode = "eager"
    two.joins()
    two.mode = "sessioned"
    two.joins("a", member_id="c-u1")
    two.syncs(c_u3=told(["a"], mode="eager"))
    two.open()
    two.passes(1)
    assert two.beat("c-u1") == "REBALANCE_IN_PROGRESS"


def test_what_a_worker_does_not_name_any_more_it_does_not_hold() -> None:
    two = Crew()
    two.joins()
    two.syncs(c_u1=told(["a", "a-0"]))
    two.joins("a", member_id="c-u1")
    two.syncs(c_u1=told())
    assert two.held() == {"c-u1": ({A: 1}, {})}


def test_what_two_are_left_with_belongs_to_the_one_that_held_it() -> None:
    two = crew()
    two.joins("a", "a-0", "a-1", member_id="c-u3")  # joins in the name of the other's work
    two.joins("a", "a-0", "a-1", member_id="c-u1")
    two.syncs(c_u1=told(), c_u3=told())
    assert two.held() == {"c-u1": ({A: 1, A0: 1, A1: 1}, {}), "c-u3": ({}, {})}


def test_a_static_worker_that_is_replaced_goes_on_with_its_work_under_newer_tokens() -> None:
    one = Crew()
    one.joins(instance_id="i")
    one.syncs(i_u1=told(["a", "a-0"]))
    evolve(one.group, TaskConfigs("a", 4, (TaskConfig({}, 4),)), 9)
    was = token_of(one.group, "i-u1", A0)
    number = one.ask(one.joining("", "i", **as_worker("http://2/")))
    joined = one.said[number]
    assert isinstance(joined, JoinGroupReply)
    assert (joined.generation, joined.member_id) == (1, "i-u3")
    assert (was, token_of(one.group, "i-u1", A0)) == (Token(1, 4), None)
    assert token_of(one.group, "i-u3", A0) == Token(1, 5)
    reply = one.asks(one.syncing("i-u3"))
    assert isinstance(reply, SyncGroupReply)
    assert reply.assignment == told(["a", "a-0"])


def test_a_lost_workers_work_is_nobodys_and_views_tell_it() -> None:
    two = crew()
    two.syncs(c_u1=told(taken=["a-1"]), c_u3=told())
    assert [each.member_id for each in sorted_members(two.group)] == ["c-u3", "c-u1"]
    assert worker_of(two.group, "c-u1") == "http://c-u1/"
    assert assigned_resources(two.group) == frozenset()  # nothing is configured
    two.passes(30_000)
    assert (two.group.owner, two.held()) == ({}, {})


def test_an_assignment_that_nobody_can_read_is_refused_and_the_round_goes_on() -> None:
    two = crew()
    assert two.syncs(c_u1=told(), c_u3=b"\0").error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert two.syncs(c_u1=told(), c_u3=told()).error is Error.NONE


def test_grants_survive_a_restart_of_the_coordinator() -> None:
    two = crew()
    two.syncs(c_u1=told(taken=["a-1"]), c_u3=told())
    was = two.held()
    two.open()
    assert two.held() == was
    assert two.group.owner == {A: "c-u1", A0: "c-u1", A1: "c-u1"}


NAMES = st.lists(st.sampled_from(["a", "a-0", "a-1", "b", "b-0"]), max_size=4, unique=True)


@pytest.mark.parametrize("mode", ["eager", "sessioned"])
@given(rounds=st.lists(st.tuples(NAMES, NAMES, NAMES, NAMES), min_size=1, max_size=4))
def test_whatever_leaders_say_no_resource_has_two_holders_and_no_epoch_goes_back(
    mode: str, rounds: list[tuple[list[str], list[str], list[str], list[str]]]
) -> None:
    two = crew(mode)
    since = dict.fromkeys((A, A0, A1), 1)
    for runs, given_first, others, given_second in rounds:
        taken = [] if mode == "eager" else others
        two.syncs(c_u1=told(given_first, taken, mode), c_u3=told(given_second, (), mode))
        granted = [
            each for pair in two.held().values() for grants in pair for each in grants.items()
        ]
        assert len(granted) == len({each for each, _ in granted})
        for held, epoch in granted:
            assert since.get(held, 0) <= epoch <= two.generation
            since[held] = epoch
        two.joins(*runs, member_id="c-u1")
        two.joins(*others, member_id="c-u3")
        if two.generation:
            two.joins(*runs, member_id="c-u1")
