"""The safety rules of a group, and how soon a simulation detects that one is off.

`seeds` says within how many seeds the simulator must find that the rule is gone; they were
counted, with a margin, when runtime/simulation/MUTATIONS.md was written.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fairlead.runtime.simulation.environment.kinds import Fault
from fairlead.runtime.simulation.schedule import Crew
from fairlead_tests.simulation import core_mutations as core
from fairlead_tests.simulation import crew_mutations as crews
from fairlead_tests.simulation import host_mutations as hosts
from fairlead_tests.simulation import member_mutations as own
from fairlead_tests.simulation import mutations as off
from fairlead_tests.simulation.mutations import Patch


@dataclass(frozen=True, slots=True)
class Mutation:
    """A rule, its section in the protocol, its switch, and how soon its absence is detected."""

    name: str
    section: str
    rule: str
    switch_off: Callable[[Patch], None]
    seeds: int = 30
    shown_by: int = 0
    """A seed that detects it, tried first; a change of the simulator may change it."""
    only: tuple[Fault, ...] = ()
    """The faults with which it is detected soon; empty: all."""
    masked: str = ""
    """Why the simulation cannot detect it while all other rules hold, or hardly ever."""
    held_by: str = ""
    """The test that fails without it, if no simulation does: its file and name."""
    crew: Crew = Crew.CONNECT
    """The protocols of the workers concerned."""


OF_CREWS = (
    Mutation(
        "tell_everybody_to_lead",
        "14 A generation",
        "A generation has one leader.",
        crews.tell_everybody_to_lead,
        shown_by=1,
        crew=Crew.MIXED,
    ),
    Mutation(
        "grant_what_runs_on",
        "14 Grants",
        "What still runs as all begin to speak eagerly is granted to nobody until it has stopped.",
        crews.grant_what_runs_on,
        shown_by=47,
        crew=Crew.MIXED,
    ),
    Mutation(
        "take_an_eager_member_at_its_word",
        "14 Grants",
        "Only who was told that all speak eagerly has stopped everything before it joins.",
        crews.take_an_eager_member_at_its_word,
        shown_by=47,
        crew=Crew.MIXED,
    ),
    Mutation(
        "convert_without_a_rise",
        "16 Upgrade",
        "A conversion raises the epoch: nothing else tells how far the group has counted.",
        crews.convert_without_a_rise,
        shown_by=18,
        crew=Crew.MIXED,
    ),
    Mutation(
        "begin_with_what_bytes_say",
        "16 Upgrade",
        "Who was granted nothing begins with nothing, whatever it was told.",
        crews.begin_with_what_bytes_say,
        shown_by=38,
        crew=Crew.MIXED,
    ),
    Mutation(
        "lose_what_is_to_be_given_up",
        "16 Upgrade",
        "What a member was to give up is pending after a conversion as well.",
        crews.lose_what_is_to_be_given_up,
        shown_by=54,
        crew=Crew.MIXED,
    ),
    Mutation(
        "take_any_answer_to_a_call",
        "17 Calls",
        "A classic member takes the answer to its latest call only.",
        crews.take_any_answer_to_a_call,
        shown_by=7,
        crew=Crew.MIXED,
    ),
    Mutation(
        "take_any_copy_of_a_call",
        "17 Calls",
        "The group drops a call that is not newer than the last one it took of that member.",
        crews.take_any_copy_of_a_call,
        seeds=300,
        shown_by=165,
        crew=Crew.MIXED,
    ),
    Mutation(
        "never_leave_a_round_that_goes_on_without_it",
        "17 Self-fencing",
        "A member that may not be in a round stops everything before that ends.",
        crews.never_leave_a_round_that_goes_on_without_it,
        shown_by=55,
        crew=Crew.MIXED,
    ),
)
"""The rules of classic members, and of conversion."""

OF_HOSTS = (
    Mutation(
        "speak_before_the_append_counts",
        "11.11",
        "An owner answers once what the answer rests on counts in the store.",
        hosts.speak_before_the_append_counts,
        seeds=20,
        crew=Crew.HOSTS,
    ),
    Mutation(
        "copy_before_the_store",
        "11.12",
        "What an owner writes goes into its copy once it counts in the store.",
        hosts.copy_before_the_store,
        seeds=20,
        crew=Crew.HOSTS,
    ),
    Mutation(
        "copy_each_log_by_itself",
        "11.12",
        "A host copies the offsets before what was written to the control log after them.",
        hosts.copy_each_log_by_itself,
        crew=Crew.HOSTS,
    ),
    Mutation(
        "go_on_after_an_unknown_outcome",
        "11.11",
        "An owner ends if it does not know what became of a write.",
        hosts.go_on_after_an_unknown_outcome,
        crew=Crew.HOSTS,
    ),
    Mutation(
        "answer_without_a_word_of_the_store",
        "11.14",
        "An answer without a record of its own waits for a word of the store.",
        hosts.answer_without_a_word_of_the_store,
        seeds=100,
        shown_by=9,
        crew=Crew.HOSTS,
    ),
    Mutation(
        "deliver_before_the_copies",
        "11.15",
        "A door delivers an answer once the copies of its host hold what it rests on.",
        hosts.deliver_before_the_copies,
        crew=Crew.HOSTS,
    ),
    Mutation(
        "deliver_by_the_control_log_alone",
        "11.15",
        "An answer waits for both copies.",
        hosts.deliver_by_the_control_log_alone,
        seeds=60,
        shown_by=5,
        crew=Crew.HOSTS,
    ),
    Mutation(
        "begin_with_short_sessions",
        "8 Session timer",
        "A new owner gives every member a full session.",
        hosts.begin_with_short_sessions,
        seeds=100,
        shown_by=7,
        crew=Crew.HOSTS,
    ),
    Mutation(
        "fence_nobody",
        "11.13",
        "The store refuses what an earlier owner writes, and its beats.",
        hosts.fence_nobody,
        seeds=100,
        shown_by=11,
        crew=Crew.HOSTS,
    ),
    Mutation(
        "take_a_beat_under_way_for_a_word",
        "11.14",
        "A beat confirms only the answers that waited when it began.",
        hosts.take_a_beat_under_way_for_a_word,
        masked="it takes an owner that is deposed within the milliseconds of one beat, and a"
        " request in the rest of them",
        held_by="group/test_unconfirmed_answers.py"
        "::test_without_a_record_it_leaves_after_a_beat_that_began_after_it_came",
        crew=Crew.HOSTS,
    ),
    Mutation(
        "claim_before_the_logs_are_read",
        "11.13",
        "A node claims once its copies have all that counts.",
        hosts.claim_before_the_logs_are_read,
        masked="the first record of a claim has to start at the end of what counts; a claim that"
        " comes too early only ends the work of an owner that was well",
        held_by="node/test_claims.py::test_it_never_claims_before_both_logs_are_read_to_the_end",
        crew=Crew.HOSTS,
    ),
)
"""The rules of several hosts with one store."""

MUTATIONS = (
    *OF_CREWS,
    *OF_HOSTS,
    Mutation(
        "admit_any_request",
        "3 Identity",
        "The group drops a request that is not newer than the last one it saw of that process.",
        off.admit_any_request,
        seeds=60,
        shown_by=31,
    ),
    Mutation(
        "serve_any_process",
        "3 The coordinator's own identity",
        "A process of the coordinator carries out nothing that was meant for another.",
        off.serve_any_process,
        only=(Fault.REPEAT, Fault.LEAVE, Fault.EXODUS, Fault.KILL_GROUP, Fault.JOIN),
    ),
    Mutation(
        "take_any_answer",
        "3 Identity",
        "A member takes the answer to its latest request only.",
        own.take_any_answer,
        seeds=60,
        shown_by=15,
        only=(Fault.DELAY, Fault.DOUBLE, Fault.REPEAT, Fault.SPLIT, Fault.JOIN, Fault.REMOVE),
    ),
    Mutation(
        "say_little_when_superseding",
        "3 Identity",
        "A request that is sent while another is unanswered is full.",
        own.say_little_when_superseding,
        seeds=100,
        shown_by=70,
    ),
    Mutation(
        "admit_any_epoch",
        "3 Epoch check",
        "A request at another epoch than the member's is fenced.",
        off.admit_any_epoch,
        masked=(
            "a member that missed an answer says everything, and the request filter drops what "
            "is older: the owned list alone tells the truth. The check stands for clients without "
            "an incarnation"
        ),
        held_by="group/test_rules_epochs.py::test_an_epoch_above_the_members_is_fenced",
    ),
    Mutation(
        "take_any_claim",
        "3 Epoch check",
        "A member that says that it runs what it must not run is fenced.",
        off.take_any_claim,
        masked="no member of a simulation says so",
        held_by=(
            "group/test_owned.py::test_who_claims_what_another_holds_is_fenced_and_told_whose_it_is"
        ),
    ),
    Mutation(
        "take_a_leave_at_its_word",
        "3 Validation",
        "A leave while something runs is invalid, and frees nothing.",
        off.take_a_leave_at_its_word,
        masked="no member of a simulation leaves before it has stopped",
        held_by="group/test_owned.py::test_a_leave_while_something_runs_frees_nothing",
    ),
    Mutation(
        "grant_while_revoking",
        "4 step 3",
        "Nothing new is granted in the step that revokes.",
        off.grant_while_revoking,
        masked=(
            "the member begins nothing before what goes has stopped and was answered for, "
            "so that an early grant only blocks others"
        ),
        held_by=(
            "group/test_rules_reconcile.py::"
            "test_what_is_to_go_goes_first_and_nothing_new_is_granted_in_that_step"
        ),
    ),
    Mutation(
        "revoke_at_once",
        "4 step 3",
        "What a member is to give up is held until it has (UNREVOKED).",
        off.revoke_at_once,
    ),
    Mutation(
        "take_silence_for_an_acknowledgement",
        "4 step 1",
        "UNREVOKED waits while the member does not say what it owns.",
        off.take_silence_for_an_acknowledgement,
    ),
    Mutation(
        "take_any_word_for_an_acknowledgement",
        "4 step 1",
        "UNREVOKED waits while the member owns what it is to give up.",
        off.take_any_word_for_an_acknowledgement,
        shown_by=2,
    ),
    Mutation(
        "grant_what_others_hold",
        "4 step 4",
        "What others hold is not granted.",
        off.grant_what_others_hold,
    ),
    Mutation(
        "be_blocked_by_oneself",
        "4",
        "A member's own pending revocation never blocks it.",
        off.be_blocked_by_oneself,
        masked=(
            "what was pending is free after the step, and the next heartbeat grants it: it "
            "costs one heartbeat"
        ),
        held_by="group/test_rules_reconcile.py::test_what_a_member_holds_itself_never_blocks_it",
    ),
    Mutation(
        "time_no_revocation",
        "4",
        "A revocation that is not acknowledged in time removes the member.",
        off.time_no_revocation,
        masked=(
            "the member's own deadline fences it first, and its join acknowledges. The "
            "timer stands for clients that keep no deadline"
        ),
        held_by=(
            "coordination/test_timers.py::"
            "test_who_does_not_give_up_in_time_is_removed_though_it_beats"
        ),
    ),
    Mutation(
        "time_no_revocation_anew",
        "4",
        "A revocation is timed anew by a repeated join that does not acknowledge it.",
        off.time_no_revocation_anew,
        masked=(
            "it takes a client without an incarnation that fences itself shortly before its "
            "revocation is over, and is granted work by its next join: 1 of 500 seeds"
        ),
        held_by=(
            "coordination/test_late_copies.py::"
            "test_who_joins_again_without_an_incarnation_keeps_what_it_is_granted_for_a_session"
        ),
    ),
    Mutation(
        "expire_any_revocation",
        "4",
        "A revocation's timer counts for the record that it was set by only.",
        off.expire_any_revocation,
        shown_by=2,
    ),
    Mutation(
        "keep_the_share_of_the_departed",
        "8 Removal",
        "A removal drops the member's target entry.",
        off.keep_the_share_of_the_departed,
    ),
    Mutation(
        "install_for_a_newer_seat",
        "5 Install",
        "A member that left and joined anew is not whom the snapshot meant.",
        off.install_for_a_newer_seat,
        masked=(
            "it takes a seat that ends and is taken anew by the same process while an assignor "
            "computes"
        ),
        held_by="group/test_install.py::test_who_left_and_came_back_meanwhile_has_no_share",
    ),
    Mutation(
        "install_for_the_departed",
        "5 Install",
        "The departed are dropped from what is installed.",
        off.install_for_the_departed,
        shown_by=1,
    ),
    Mutation(
        "expire_a_newer_seat",
        "8 Session timer",
        "A session's timer counts for the seat that it was set for only.",
        off.expire_a_newer_seat,
        shown_by=48,
    ),
    Mutation(
        "make_no_more_moves",
        "5 Install",
        "When the rest of a target's moves is due, the group asks for the next target.",
        off.make_no_more_moves,
        seeds=60,
        shown_by=28,
    ),
    Mutation(
        "resume_with_short_sessions",
        "8 Session timer",
        "After a recovery every member gets a full session, each revocation its full time.",
        off.resume_with_short_sessions,
        seeds=60,
        shown_by=15,
    ),
    Mutation(
        "forget_the_members_own_session",
        "8 Session timer",
        "The group waits for the session that the member fences itself by, if that is longer.",
        off.forget_the_members_own_session,
        seeds=150,
        only=(Fault.CONFIGURE, Fault.CUT, Fault.SPLIT, Fault.JOIN),
    ),
    Mutation(
        "keep_grants_of_a_returning_seat",
        "8 Static members",
        "A static member that returns takes new grant epochs.",
        off.keep_grants_of_a_returning_seat,
        seeds=60,
        shown_by=22,
        only=(Fault.STEP_AWAY, Fault.SPLIT, Fault.JOIN),
    ),
    Mutation(
        "count_no_returns",
        "8 Static members",
        "A static member that returns has tokens of its own: each return counts.",
        off.count_no_returns,
        seeds=60,
        shown_by=39,
    ),
    Mutation(
        "count_the_session_from_the_answer",
        "8 Self-fencing",
        "A session counts from the sending time of the answered request.",
        own.count_the_session_from_the_answer,
        seeds=60,
        shown_by=12,
    ),
    Mutation(
        "never_fence",
        "8 Self-fencing",
        "A member that may have lost its session stops everything by itself.",
        own.never_fence,
        shown_by=12,
    ),
    Mutation(
        "never_kill",
        "8 Self-fencing",
        "What has not stopped by the deadline is killed.",
        own.never_kill,
        seeds=60,
        shown_by=5,
    ),
    Mutation(
        "let_a_late_answer_move_the_deadline",
        "8 Self-fencing",
        "An answer that is read when the fence is due does not call it off.",
        own.let_a_late_answer_move_the_deadline,
        masked=(
            "the session counts from the sending time, so that the next tick fences all the "
            "same, and only what the log still grants can be begun until then"
        ),
        held_by=(
            "membership/test_fencing.py::"
            "test_an_answer_that_lay_unread_past_the_session_starts_nothing"
        ),
    ),
    Mutation(
        "call_a_fence_off",
        "8 Self-fencing",
        "A fence once begun is not called off.",
        own.call_a_fence_off,
        masked=(
            "a member that is removed hears so at once by its held request, and fences anew: it "
            "takes a lost answer in the last second of a revocation that hangs"
        ),
        held_by=(
            "membership/test_fencing.py::test_a_late_answer_calls_no_fence_off_and_starts_nothing"
        ),
    ),
    Mutation(
        "keep_no_deadline_of_a_revocation",
        "8 Revocation",
        "A revocation has its own deadline at the member.",
        own.keep_no_deadline_of_a_revocation,
        shown_by=29,
        only=(Fault.HANG, Fault.SPLIT, Fault.JOIN, Fault.LEAVE),
    ),
    Mutation(
        "take_stopped_for_acknowledged",
        "8 Revocation",
        "It is acknowledged only when the report was answered.",
        own.take_stopped_for_acknowledged,
        masked=(
            "it takes a report that is lost in the last second before the deadline, and new "
            "owners that are quicker than the next answer"
        ),
        held_by=(
            "membership/test_revoking.py::"
            "test_a_revocation_that_stopped_but_was_not_answered_for_is_as_late"
        ),
    ),
    Mutation(
        "rejoin_while_something_runs",
        "3 Validation",
        "Epoch 0 asserts that nothing runs.",
        own.rejoin_while_something_runs,
        shown_by=52,
    ),
    Mutation(
        "hold_back_owned_while_leaving",
        "4, 8 Leaving",
        "A member that leaves says with each request what it still owns.",
        own.hold_back_owned_while_leaving,
        shown_by=25,
        only=(Fault.LEAVE, Fault.HANG, Fault.SPLIT, Fault.JOIN),
    ),
    Mutation(
        "start_what_still_runs",
        "9",
        "A resource starts only when nothing of it runs.",
        core.start_what_still_runs,
    ),
    Mutation(
        "start_what_may_run_as_it_was",
        "9",
        "A resource starts with the config and the token that the log grants by then.",
        core.start_what_may_run_as_it_was,
    ),
    Mutation(
        "take_any_answer_to_an_install",
        "5 Install",
        "An answer to an Install ends no computation that has handed nothing in yet.",
        core.take_any_answer_to_an_install,
        masked=(
            "the group asks again, and the assignor computes the same once more: it takes an old "
            "answer that comes while it computes, and costs the computation"
        ),
        held_by="worker/test_core.py::test_an_answer_to_an_earlier_install_ends_no_computation",
    ),
    Mutation(
        "forget_what_was_carried",
        "DATA_PLANE 3",
        "A commit whose message is given up is told as unknown, so that its task asks again.",
        core.forget_what_was_carried,
        shown_by=54,
    ),
    Mutation(
        "commit_under_any_token",
        "11.7",
        "Only the current fencing token commits.",
        off.commit_under_any_token,
        shown_by=9,
    ),
    Mutation(
        "commit_from_anywhere",
        "11.7",
        "A commit starts at the logged offset.",
        off.commit_from_anywhere,
        masked="tokens and the order of batches refuse first whatever would start elsewhere",
        held_by=(
            "group/test_commit.py::"
            "test_a_commit_that_does_not_start_at_the_logged_offset_is_refused"
        ),
    ),
    Mutation(
        "answer_and_forget",
        "DATA_PLANE 1",
        "A connector is to be what people were told that it will be.",
        off.answer_and_forget,
        shown_by=15,
        only=(Fault.STOP, Fault.SPLIT, Fault.JOIN),
    ),
    Mutation(
        "put_what_is_not_refused",
        "DATA_PLANE 1",
        "Of several connectors that are put at once all are put, or none.",
        off.put_what_is_not_refused,
        shown_by=1,
        only=(Fault.PUT, Fault.DELETE, Fault.SPLIT, Fault.JOIN),
    ),
    Mutation(
        "stop_at_once",
        "DATA_PLANE 1",
        "A connector counts as stopped once nobody has any of its tasks.",
        off.stop_at_once,
        shown_by=2,
        only=(Fault.STOP, Fault.RESUME, Fault.SPLIT, Fault.JOIN),
    ),
    Mutation(
        "alter_what_runs",
        "DATA_PLANE 8",
        "Offsets are set only of a connector that counts as stopped.",
        off.alter_what_runs,
        only=(Fault.ALTER, Fault.SPLIT, Fault.JOIN),
    ),
    Mutation(
        "leave_alterations_unrecorded",
        "DATA_PLANE 8",
        "Who set offsets is told though the process has died between its two logs.",
        off.leave_alterations_unrecorded,
        seeds=60,
        shown_by=8,
        only=(Fault.ALTER, Fault.KILL_WRITING, Fault.SPLIT, Fault.JOIN),
    ),
)
