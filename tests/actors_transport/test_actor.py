"""What an actor can do through the transport, and how it fails."""
# pyright: basic, reportPrivateUsage=false

import contextlib
import errno
import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from thespian.actors import DeadEnvelope, PoisonMessage, WakeupMessage, WatchMessage
from thespian.system.messages.multiproc import ChildMayHaveDied

from fairlead.actors.transport.actor import Actor, Address, Failure, address_key
from fairlead.actors.transport.crashes import TRACES
from fairlead.actors.transport.processes import ActorManager
from fairlead.actors.transport.system import CannotStartError, UnreachableError
from fairlead.actors.transport.tcp import Transport
from fairlead_tests.actor_system import InProcess, Running, eventually, log_of, runs
from fairlead_tests.actors_transport.probe_actors import (
    Break,
    Create,
    Diary,
    Echo,
    Greet,
    Kill,
    Late,
    Parent,
    Quarrel,
    Silent,
    Stop,
    Tell,
    Threads,
    Timers,
)

ASK = 30.0
pytestmark = pytest.mark.cluster


def test_a_handler_that_raises_runs_once_and_the_sender_is_told(shared_system: Running) -> None:
    system = shared_system.system
    echo = system.create(Echo)
    assert system.ask(echo, Break("lost it"), ASK) == Failure("ValueError: lost it")
    assert system.ask(echo, "how often broken", ASK) == 1


def test_a_handler_that_raises_runs_once_in_process(in_process: InProcess) -> None:
    echo = in_process.create(Echo)
    assert in_process.ask(echo, Break("lost it")) == Failure("ValueError: lost it")
    assert in_process.ask(echo, "how often broken") == 1


def test_a_failure_to_fail_ends_there(shared_system: Running) -> None:
    system = shared_system.system
    silent = system.create(Silent)
    system.tell(silent, Break())
    assert system.ask(silent, "how often broken", ASK) == 1
    assert "cannot even fail" in log_of(shared_system.folder)


def test_a_failure_is_not_answered_with_a_failure(in_process: InProcess) -> None:
    first, second = in_process.create(Quarrel), in_process.create(Quarrel)
    in_process.tell(first, Tell(second, "nonsense"))
    assert (in_process.ask(first, "how many"), in_process.ask(second, "how many")) == (2, 1)


def test_dying_in_process_spares_the_process(in_process: InProcess) -> None:
    echo = in_process.create(Echo)
    with pytest.raises(SystemExit, match=r"^7$"):
        in_process.ask(echo, Kill(7))


def test_what_is_said_is_never_logged(shared_system: Running) -> None:
    system = shared_system.system
    parent, echo = system.create(Parent), system.create(Echo)
    pid = system.ask(echo, "pid", ASK)
    system.tell(parent, Tell(echo, "the secret"))
    assert isinstance(pid, int)
    os.kill(pid, signal.SIGKILL)
    system.tell(parent, Tell(echo, "the secret"))
    system.ask(parent, "story", ASK)
    assert "the secret" not in log_of(shared_system.folder)


def test_a_child_killed_or_stopped_is_lost_once(shared_system: Running) -> None:
    system = shared_system.system
    parent = system.create(Parent)
    pids = [system.ask(system.ask(parent, Create(name), ASK), "pid", ASK) for name in "abcd"]
    story = [f"created child {number}" for number in range(4)]
    assert system.ask(parent, "story", ASK) == story

    os.kill(pids[0], signal.SIGKILL)  # type: ignore[arg-type]
    eventually(lambda: len(_story(shared_system, parent)) == 5, "the first is lost")
    os.kill(pids[1], signal.SIGTERM)  # type: ignore[arg-type]
    eventually(lambda: len(_story(shared_system, parent)) == 6, "the second is lost")
    system.tell(parent, Stop("child 2"))
    eventually(lambda: len(_story(shared_system, parent)) == 7, "the third is lost")
    child = shared_system.titled("fairlead: echo d")[0]
    child.kill()
    eventually(lambda: len(_story(shared_system, parent)) == 8, "the fourth is lost")
    assert _story(shared_system, parent) == story + [f"lost child {n}" for n in range(4)]


def test_a_crash_in_native_code_ends_a_process_and_leaves_its_stack(
    shared_system: Running,
) -> None:
    system = shared_system.system
    parent = system.create(Parent)
    child = system.ask(parent, Create("a"), ASK)
    system.tell(child, "crash")
    eventually(lambda: "lost child 0" in _story(shared_system, parent), "it is lost")
    stack = (shared_system.folder / "logs" / TRACES).read_text()
    assert stack.startswith("Fatal Python error: Segmentation fault")
    assert "in receive" in stack


def _story(running: Running, parent: object) -> list[str]:
    return cast("list[str]", running.system.ask(parent, "story", ASK))


@pytest.mark.parametrize("name", ["stillborn", "deaf"])
def test_a_child_that_cannot_begin_is_lost_too(shared_system: Running, name: str) -> None:
    parent = shared_system.system.create(Parent)
    shared_system.system.ask(parent, Create(name), ASK)
    shared_system.system.tell(parent, Greet("child 0"))  # it may get that, and die with it
    eventually(lambda: "lost child 0" in _story(shared_system, parent), "it is lost")
    before = _story(shared_system, parent).count("undelivered str")
    shared_system.system.tell(parent, Greet("child 0"))
    eventually(
        lambda: _story(shared_system, parent).count("undelivered str") > before,
        "the greeting is back",
    )
    story = _story(shared_system, parent)
    assert story.count("undelivered str") <= 2
    assert [each for each in story if each != "undelivered str"] == [
        "created child 0",
        "lost child 0",
    ]


def test_a_child_has_one_key(shared_system: Running) -> None:
    parent = shared_system.system.create(Parent)
    shared_system.system.ask(parent, Create("a"), ASK)
    shared_system.system.tell(parent, Greet("child 0"))
    told = ["created child 0", "hello from child 0"]
    eventually(lambda: _story(shared_system, parent) == told, "the child answers")


def test_a_message_to_the_dead_comes_back(shared_system: Running) -> None:
    system = shared_system.system
    parent, echo = system.create(Parent), system.create(Echo)
    assert system.ask(echo, Kill(1), 0.2) is None
    eventually(lambda: shared_system.titled("fairlead: echo") == [], "it is dead")
    system.tell(parent, Tell(echo, b"anyone?"))
    eventually(lambda: _story(shared_system, parent) == ["undelivered bytes"], "it comes back")
    with pytest.raises(UnreachableError):
        system.tell(echo, "anyone?")
    system.stop(echo)


def test_what_others_could_not_deliver_is_heard_of(in_process: InProcess) -> None:
    parent = in_process.create(Parent)
    in_process.tell(parent, PoisonMessage("poisoned"))
    in_process.tell(parent, DeadEnvelope(parent, 1))
    assert in_process.ask(parent, "story") == ["undelivered str", "undelivered int"]


def test_a_message_that_cannot_be_pickled_comes_back(shared_system: Running) -> None:
    parent = shared_system.system.create(Parent)
    shared_system.system.tell(parent, "send nonsense")
    eventually(lambda: _story(shared_system, parent) == ["undelivered lock"], "it comes back")


def test_timers_due_together_come_in_order(shared_system: Running) -> None:
    timers = shared_system.system.create(Timers)
    shared_system.system.tell(timers, "go")
    eventually(
        lambda: shared_system.system.ask(timers, "order", ASK) == [0, 1, 2, 3, 4, 5],
        "all are due, in order",
    )


def test_threads_post_to_their_actor(shared_system: Running) -> None:
    actor = shared_system.system.create(Threads)
    shared_system.system.tell(actor, "post")

    def posted() -> list[tuple[int, int]]:
        answer = shared_system.system.ask(actor, "posted", ASK)
        return cast("list[tuple[int, int]]", answer)

    eventually(lambda: len(posted()) == 4 * Threads.COUNT, "all have arrived")
    everything = [(thread, n) for thread in range(4) for n in range(Threads.COUNT)]
    assert sorted(posted()) == everything
    by_thread = [[n for thread, n in posted() if thread == each] for each in range(4)]
    assert by_thread == [list(range(Threads.COUNT))] * 4


def test_threads_send_to_others(shared_system: Running) -> None:
    parent = shared_system.system.create(Parent)
    speaker = shared_system.system.create(Threads)
    shared_system.system.tell(speaker, Tell(parent, "hello"))
    told = [f"hello from {address_key(speaker)}"]
    eventually(lambda: _story(shared_system, parent) == told, "it arrives")


def test_a_thread_left_behind_does_not_keep_the_process(shared_system: Running) -> None:
    actor = shared_system.system.create(Threads)
    shared_system.system.tell(actor, "linger")
    shared_system.system.ask(actor, "posted", ASK)
    shared_system.system.stop(actor)
    eventually(lambda: shared_system.titled("fairlead: threads") == [], "it ends")


@pytest.mark.parametrize("how", ["stop", "terminate", "both"])
def test_an_actor_is_told_once_that_it_stops(shared_system: Running, how: str) -> None:
    diary = shared_system.system.create(Diary)
    written = shared_system.folder / how
    assert shared_system.system.ask(diary, str(written), ASK) == "noted"
    (process,) = shared_system.titled("fairlead: diary")
    if how in {"terminate", "both"}:
        process.send_signal(signal.SIGTERM)
    if how in {"stop", "both"}:
        with contextlib.suppress(UnreachableError):
            shared_system.system.stop(diary)
    eventually(lambda: not runs(process), "it ends")
    assert written.read_text() == "stopping\n"


def test_an_actor_is_told_once_that_its_system_shuts_down(actor_system: Running) -> None:
    diary = actor_system.system.create(Diary)
    written = actor_system.folder / "diary"
    assert actor_system.system.ask(diary, str(written), ASK) == "noted"
    actor_system.shut_down()
    assert written.read_text() == "stopping\n"


def test_a_late_answer_is_not_taken_for_the_next(shared_system: Running) -> None:
    late = shared_system.system.create(Late)
    assert shared_system.system.ask(late, 0.2, 0.05) is None
    assert shared_system.system.ask(late, 0.3, ASK) == 0.3


def test_an_actor_of_no_module_cannot_start(shared_system: Running) -> None:
    nowhere = type("Nowhere", (Echo,), {"__module__": "no.such.module"})
    with pytest.raises(CannotStartError, match=r"no\.such\.module"):
        shared_system.system.create(nowhere)


class Mailbox:
    """The transport of an actor whose loop does not run."""

    myAddress = "me"  # noqa: N815  (Thespian's name)

    def __init__(self) -> None:
        self._incomingEnvelopes: list[Any] = []
        self.connections = 0

    def interrupt_wait(self) -> None:
        """Connect to oneself."""
        self.connections += 1


def test_an_actor_without_a_free_descriptor_sees_the_end_of_a_child_by_its_next_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    transport: Any = Transport.__new__(Transport)
    transport._wakeup_lock, transport.myAddress = threading.Lock(), "me"
    transport._pendingWakeups, transport._activeWakeups = [], []
    transport._checkChildren = transport._shutdownSignalled = False
    mailbox = transport._incomingEnvelopes = list[Any]()
    with monkeypatch.context() as full:
        full.setattr(socket, "socket", fail)
        transport.interrupt_wait(check_children=True)
    assert mailbox == []
    transport._realizeWakeups()
    assert [type(each.message) for each in mailbox] == [ChildMayHaveDied]


class Received(Actor):
    """Keeps what it receives, and may post another message for each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[object] = []
        self.posts_again = False

    def receive(self, message: object, sender: Address) -> None:
        del sender
        self.received.append(message)
        if self.posts_again:
            self.post("another")


class BusyMailbox(list[Any]):
    """The mailbox of an actor that handles a message as soon as it comes."""

    def __init__(self, handle: Callable[[object], None]) -> None:
        super().__init__()
        self._handle = handle

    def append(self, envelope: Any) -> None:
        """Take a message in."""
        self._handle(envelope.message)


def test_a_thread_wakes_an_actor_that_has_handled_its_first_message_before_it_was_woken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    actor, manager, mailbox = Received(), ActorManager.__new__(ActorManager), Mailbox()
    manager.transport, actor._myRef = mailbox, manager
    watched = list[int]()

    def handle(message: object) -> None:
        told = actor.receiveMessage(message, "me")
        watched[:] = [] if told is None else told.filenos

    mailbox._incomingEnvelopes = BusyMailbox(handle)
    actor.post("first")
    actor.post("second")
    assert select.select(watched, [], [], 0)[0] == watched != []
    for _ in range(2):
        handle(WatchMessage([*watched]))
    assert caplog.messages == [], "it may be told of one input twice"
    actor.post("third")
    assert select.select(watched, [], [], 0)[0] == watched != []
    handle(WatchMessage([*watched]))
    assert actor.received == ["first", "second", "third"]
    os.close(watched[0])


def test_a_thread_that_posts_wakes_the_actor_without_a_connection_but_for_the_first_time() -> None:
    actor, manager, mailbox = Received(), ActorManager.__new__(ActorManager), Mailbox()
    manager.transport, actor._myRef = mailbox, manager

    def hear(message: object) -> list[int]:
        """Return the descriptors that the actor wants to be woken by."""
        told = actor.receiveMessage(message, "me")
        return [] if told is None else list(told.filenos)

    assert hear(WakeupMessage(timedelta(), None)) == []
    for number in range(3):
        actor.post(number)
    (first,) = mailbox._incomingEnvelopes
    assert mailbox.connections == 1
    (waker,) = hear(first.message)
    assert select.select([waker], [], [], 0)[0] == [waker]
    assert hear(WatchMessage([waker])) == [waker]
    assert select.select([waker], [], [], 0)[0] == [], "it is not woken for this again"
    assert actor.received == [0, 1, 2]
    os.close(waker)


def test_threads_that_post_all_the_time_keep_no_message_of_a_process_waiting() -> None:
    actor, manager, mailbox = Received(), ActorManager.__new__(ActorManager), Mailbox()
    manager.transport, actor._myRef = mailbox, manager
    actor.post("first")
    told = actor.receiveMessage(mailbox._incomingEnvelopes.pop().message, "me")
    assert told is not None
    actor.posts_again = True
    actor.post("second")
    actor.receiveMessage(WatchMessage(told.filenos), "me")
    assert actor.received == ["first", "second"], "the next one waits for the next poll"
    assert mailbox._incomingEnvelopes == []
    assert select.select(told.filenos, [], [], 0)[0] == told.filenos
    os.close(told.filenos[0])
