"""Whether a task may write, as its worker's actor knows it: by the log's end and by the clock."""

from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead.actors.messages.members import CommitOffsets, CommitReply
from fairlead.events.model import Resource, RunState, TaskConfig, Token
from fairlead.events.records import TargetState, TaskConfigs, TaskStatus
from fairlead.events.stores.opening import StoreSpec
from fairlead.runtime.cluster.messages import GroupAt
from fairlead.runtime.node.worker import actor
from fairlead.runtime.node.worker.actor import WorkerActor
from fairlead.runtime.node.worker.core.contract import PresentAsked
from fairlead.runtime.node.worker.plugins import rights
from fairlead.runtime.node.worker.plugins.rights import ActorRights, RightsQuestion
from fairlead.runtime.pipeline.tasks.reports import SPLITS_AGAIN, StatusChanged, TaskConfigsChanged
from fairlead_tests.membership.driver import SESSION_MS
from fairlead_tests.worker.driven import Driven

STORE = StoreSpec("postgres", "fairlead")
A, A0, TOKEN = Resource("A"), Resource("A", 0), Token(1, 1)


def running() -> Driven:
    driven = Driven()
    driven.begin()
    driven.answer("")
    driven.grants("A A-0")
    driven.answer("A A-0")
    driven.answer()
    return driven


def may_write(driven: Driven, token: Token = TOKEN, later_ms: int = 0) -> bool:
    return driven.core.may_write(A0, token, driven.now_ms + later_ms)


def test_a_task_that_runs_as_the_log_says_may_write_until_the_workers_deadline() -> None:
    driven = running()
    assert may_write(driven)
    assert may_write(driven, later_ms=SESSION_MS - 1)
    assert not may_write(driven, later_ms=SESSION_MS), "as after SIGSTOP, before the watchdog"


def test_a_task_that_the_log_does_not_grant_under_its_token_may_not_write() -> None:
    driven = running()
    assert not may_write(driven, Token(2, 1))
    driven.grants("A")
    assert not may_write(driven), "the log is read anew for each question"


def test_a_task_of_a_former_generation_may_not_write_although_it_still_runs() -> None:
    driven = running()
    driven.log.write(TaskConfigs("A", 2, (TaskConfig({"task": "other"}, 2),)))
    assert not may_write(driven)
    assert not may_write(driven, Token(1, 2)), "that of the new one has not begun"


def test_a_task_that_is_to_end_may_not_write() -> None:
    driven = running()
    driven.answer("A", epoch=2)
    assert not may_write(driven)


def test_no_task_may_write_while_its_connector_fences_the_former_ones() -> None:
    driven = running()
    driven.log.write(TaskStatus(A, RunState.RUNNING, "w", TOKEN, 1, SPLITS_AGAIN))
    assert not may_write(driven)
    driven.log.write(TaskStatus(A, RunState.RUNNING, "w", TOKEN, 2))
    assert may_write(driven)


def test_what_was_reported_is_logged_once_the_log_shows_it() -> None:
    driven = running()
    assert driven.core.has_logged(A)
    driven.report(StatusChanged(A, TOKEN, RunState.RUNNING, SPLITS_AGAIN))
    assert not driven.core.has_logged(A)
    assert driven.core.has_logged(A0), "that of others does not matter"
    driven.log.write(TaskStatus(A, RunState.RUNNING, "w", TOKEN, 1, SPLITS_AGAIN))
    driven.passes(1)
    assert driven.core.has_logged(A)
    driven.report(TaskConfigsChanged("A", TOKEN, ({"task": "other"},)))
    assert not driven.core.has_logged(A)
    driven.log.write(TaskConfigs("A", 2, (TaskConfig({"task": "other"}, 2),)))
    driven.passes(1)
    assert driven.core.has_logged(A)


def test_a_task_is_over_with_its_connector_while_that_is_stopped_or_beyond_the_last_one() -> None:
    driven = running()
    assert not driven.core.has_ended(A0)
    assert driven.core.has_ended(Resource("A", 1))
    driven.log.write(TargetState("A", RunState.PAUSED, 1))
    assert not driven.core.has_ended(A0)
    driven.log.write(TargetState("A", RunState.STOPPED, 2))
    assert driven.core.has_ended(A0)
    assert driven.core.has_ended(Resource("B", 0)), "it is deleted"


def test_a_task_of_connect_that_is_paused_is_turned_and_may_write_as_before() -> None:
    driven = running()
    config = {"task": "0", "task.class": "T"}
    driven.log.write(TaskConfigs("A", 2, (TaskConfig(config, 2),)))
    driven.passes(1_000)
    driven.ends("A-0")
    token = Token(1, 2)
    assert may_write(driven, token)
    driven.transcript()
    driven.log.write(TargetState("A", RunState.PAUSED, 1))
    assert may_write(driven, token), "a pause takes no right away"
    driven.passes(1_000)
    told = driven.transcript().splitlines()
    assert [each for each in told if "stop" in each or "turn" in each] == [
        "> stop A",
        "> turn A-0 to PAUSED",
    ]
    assert may_write(driven, token)
    driven.log.write(TargetState("A", RunState.STOPPED, 2))
    assert not may_write(driven, token)


def test_a_thread_has_the_answer_of_the_actors_thread() -> None:
    driven = running()

    def post(question: RightsQuestion) -> None:
        answer = question.ask(driven.core, driven.now_ms)
        Thread(target=question.answer.set_result, args=(answer,)).start()

    asked = ActorRights(post)
    assert asked.may_write(A0, TOKEN)
    assert not asked.may_write(A0, Token(2, 1))
    assert asked.has_logged(A)
    assert not asked.has_ended(A0)


def test_an_actor_that_hangs_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "_WAIT_S", 0.01)
    asked = list[RightsQuestion]()
    assert not ActorRights(asked.append).may_write(A0, TOKEN)
    assert len(asked) == 1


def test_where_the_log_is_a_copy_the_group_says_first_how_far_it_has_to_be() -> None:
    driven = running()
    driven.transcript()
    driven.report(PresentAsked("first"), PresentAsked("second"))
    first = driven.last(CommitOffsets)
    driven.report(PresentAsked("third"))
    assert driven.last(CommitOffsets).number not in {first.number, 0}
    driven.hear(CommitReply((), first.number + 1))
    driven.hear(CommitReply((), first.number))
    driven.hear(GroupAt(None, 2))
    assert [each for each in driven.transcript().splitlines() if "heartbeat" not in each] == [
        "< PresentAsked, PresentAsked",
        "> commits of nothing, 0 published",
        "< PresentAsked",
        "> commits of nothing, 0 published",
        "< CommitReply",
        "< CommitReply",
        "> first may read",
        "> second may read",
        "< GroupAt",
        "> third has no answer",
    ]


class AskedWorker(WorkerActor):
    """A worker's actor around a core that a test drives; what it sends to the group is kept."""

    def __init__(
        self, driven: Driven, monkeypatch: pytest.MonkeyPatch, store: StoreSpec | None
    ) -> None:
        super().__init__()
        self.sent = list[object]()
        monkeypatch.setattr(actor, "_steady_ms", lambda: driven.now_ms)
        monkeypatch.setattr(actor, "Watchdog", Watched)
        monkeypatch.setattr(actor, "assemble", lambda *_: (driven.core, None, None, None))
        monkeypatch.setattr(driven.core, "begin", lambda _: [])  # it has begun
        node = SimpleNamespace(store=store)
        order = SimpleNamespace(name="w", node=node, group="group", assignor=None)
        self._begin(cast("Any", order), "supervisor")

    def send(self, to: object, message: object) -> None:
        """Keep what the group gets."""
        if to == "group":
            self.sent.append(message)

    def wake_after(self, seconds: float, payload: object = None) -> None:
        """Never wake."""


class Watched:
    """Stands for a watchdog."""

    def until(self, end_ms: int | None) -> None:
        """Do nothing."""


@pytest.mark.parametrize("status", [SPLITS_AGAIN, ""])
def test_a_copy_that_lags_is_not_read_before_it_has_what_the_owner_says(
    monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    driven = running()
    monkeypatch.setattr(rights, "_WAIT_S", 0.01)
    worker, anybody = AskedWorker(driven, monkeypatch, STORE), cast("Any", None)
    posted = list[RightsQuestion]()
    assert not ActorRights(posted.append).may_write(A0, TOKEN), "nobody has answered yet"
    (asked,) = posted
    worker.receive(asked, anybody)
    assert not asked.answer.done(), "the copy here grants it"
    (sent,) = worker.sent
    assert isinstance(sent, CommitOffsets)
    driven.log.write(TaskStatus(A, RunState.RUNNING, "w", TOKEN, 1, status))  # the copy moves
    worker.receive(CommitReply((), sent.number), anybody)
    assert asked.answer.result(0) == (not status)


def test_a_log_that_is_no_copy_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    driven = running()
    worker = AskedWorker(driven, monkeypatch, None)
    assert ActorRights(lambda asked: worker.receive(asked, cast("Any", None))).may_write(A0, TOKEN)
    assert worker.sent == []
