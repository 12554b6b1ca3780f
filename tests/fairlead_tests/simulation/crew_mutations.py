# pyright: basic
"""Ways to switch rules of classic members and of conversions off; see `mutations.py`."""

from dataclasses import replace
from typing import Any

from fairlead.actors.classic import grants, rules
from fairlead.actors.group.members.request_filter import CallFilter
from fairlead.actors.group.translation import upgrade
from fairlead.actors.worker.classic.calls import MemberCalls
from fairlead.actors.worker.classic.membership import ClassicMembership
from fairlead_tests.simulation.mutations import Patch, always

# -- §14: rounds and grants


def tell_everybody_to_lead(patch: Patch) -> None:
    original = rules.join_reply

    def joined(turn: Any, member_id: str) -> Any:
        last = turn.generation
        everybody = rules._members(turn, last.protocol)
        return replace(original(turn, member_id), leader=member_id, members=everybody)

    patch.setattr(rules, "join_reply", joined)


def grant_what_runs_on(patch: Patch) -> None:
    always(patch, grants, "_runs", ())


def take_an_eager_member_at_its_word(patch: Patch) -> None:
    always(patch, rules, "_stops_first", answer=True)


# -- §16: conversion


def convert_without_a_rise(patch: Patch) -> None:
    patch.setattr(upgrade, "_bump_with_cause", lambda _, decision, *__: decision)


def begin_with_what_bytes_say(patch: Patch) -> None:
    always(patch, upgrade, "_tells_grants", answer=False)


def lose_what_is_to_be_given_up(patch: Patch) -> None:
    original = upgrade._current

    def current(last: Any, member_id: str, own: Any, wanted: Any) -> Any:
        return original(
            last, member_id, {each: own[each] for each in own if each in wanted}, wanted
        )

    patch.setattr(upgrade, "_current", current)


# -- §17: a member's own side


def take_any_answer_to_a_call(patch: Patch) -> None:
    original = MemberCalls.match

    def match(self: MemberCalls, reply: Any) -> bool:
        for sent in (self._pending, self._heartbeat):
            if sent is not None and type(reply).__name__ == f"{type(sent.call).__name__}Reply":
                reply = replace(reply, number=sent.call.number)
        return original(self, reply)

    patch.setattr(MemberCalls, "match", match)


def take_any_copy_of_a_call(patch: Patch) -> None:
    always(patch, CallFilter, "is_new", answer=True)


def never_leave_a_round_that_goes_on_without_it(patch: Patch) -> None:
    original = ClassicMembership._join_round

    def join_round(self: ClassicMembership, now_ms: int, *, has_joined: bool) -> Any:
        del has_joined
        return original(self, now_ms, has_joined=True)

    patch.setattr(ClassicMembership, "_join_round", join_round)
