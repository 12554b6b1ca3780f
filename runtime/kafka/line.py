"""The lines to one shard of groups: calls go out as they come in, answers come as they exist.

Two threads own a way into the actor system each. One sends what has come in since its last packet
was answered, so that the busier it gets the more travels together; the other waits for answers
that had to wait. They know nothing of sockets; the event loop knows nothing of actors. What is
under way is bounded by the connections, each of which has one request, and by the budget of bytes
that they share.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...actors.door.actor import Address
from ...actors.door.system import Line, UnreachableError, connect
from ...actors.messages.errors import Error
from ...actors.messages.groups import (
    AwaitReplies,
    EndHold,
    GroupCalls,
    GroupReplies,
    PackedCall,
)
from ..cluster.messages import SUPERVISOR, ShardsAt, Whereabouts, WhereAreShards, WhereIs
from ..cluster.run_folder import KeyRefusedError, NoNodeError, RunFolder

LOGGER = logging.getLogger(__name__)
ASK_SECONDS: Final = 2.0
"""How long a shard may owe an answer before it is looked for anew."""
WHERE_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = 0.1
MOST_CALLS: Final = 2_000
"""In one packet."""


Wait = Callable[[Callable[[], None]], None]
"""Is called when a group has taken a call, and has to wait with its answer: with what ends that
wait where it is but one for news."""


def no_wait(end_hold: Callable[[], None]) -> None:
    """Let it wait."""


class Lost(Exception):  # noqa: N818  # says what happened
    """Whether the call was taken is not known: `error` has the client ask again."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.value)
        self.error = error


class WayIn:
    """One thread's way to the actor of a shard, which may be another one each time it is asked."""

    def __init__(self, data_dir: Path, shard: int | str) -> None:
        """Take the number of a shard, or the id of the workers' group."""
        self._folder, self._shard = RunFolder(data_dir), shard
        self._open = ExitStack()
        self._line: Line | None = None
        self._actor: Address | None = None
        self._heard = 0
        """Which of the shard's answers has come last."""

    def ask(self, message: GroupCalls | AwaitReplies) -> GroupReplies | None:
        """Return the shard's answer; None: it gave none, or is not there at this moment."""
        try:
            if self._line is None:
                self._find()
            if self._line is not None:
                told = replace(message, heard=self._heard)
                answer = self._line.ask(self._actor, told, ASK_SECONDS)
                if isinstance(answer, GroupReplies):
                    self._heard = answer.number
                    return answer
        except (KeyRefusedError, NoNodeError, UnreachableError, OSError, ValueError) as error:
            LOGGER.debug("shard %s cannot be reached: %s", self._shard, error)
        self.close()
        return None

    def close(self) -> None:
        """Let go of it; the next question looks for it anew."""
        self._open.close()
        self._line = self._actor = None

    def _find(self) -> None:
        system = connect(self._folder.door())
        self._open.callback(system.close)
        supervisor = system.named(SUPERVISOR)
        if supervisor is None:
            return
        line = self._open.enter_context(system.private())
        shard = self._shard
        where = WhereIs(shard) if isinstance(shard, str) else WhereAreShards()
        found = line.ask(supervisor, where, WHERE_SECONDS)
        if isinstance(found, Whereabouts):
            self._actor = found.address
        elif isinstance(found, ShardsAt) and isinstance(shard, int):
            self._actor = found.addresses[shard] if shard < len(found.addresses) else None
        self._line = line if self._actor is not None else None


class ShardLine:
    """Calls to one shard, each with the future of its answer; its threads run by themselves."""

    def __init__(self, ways: tuple[WayIn, WayIn], host: int) -> None:
        """Take a way in for each thread; `host` tells this process from earlier ones."""
        self._ways, self._host = ways, host
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        """Who waits for which answer, by number; this and the next are the event loop's alone."""
        self._taken: dict[int, int] = {}
        """Under which epoch of the shard a call was taken whose answer had to wait, by number."""
        self._waits: dict[int, tuple[Wait, Any]] = {}
        """How the clients of calls wait, by number, with the call."""
        self._numbers = 0
        self.epoch = -1
        """That of the shard's process that has answered last."""
        self._ticking: list[PackedCall] = []
        """What has come within this tick of the event loop."""
        self._calls: list[PackedCall] = []
        """What is to be sent next; guarded by the condition, as both sides have it."""
        self._has_calls = threading.Condition()
        self._is_open = True
        self._has_begun = False

    def begin(self) -> None:
        """Have the host be heard from now on; the first call does so as well."""
        if not self._has_begun:
            self._has_begun = True
            for run in (self._send_calls, self._await_replies):
                threading.Thread(target=run, name=run.__name__, daemon=True).start()

    async def ask(self, call: PackedCall, wait: Wait = no_wait) -> Any:
        """Return the reply to a call; raises `Lost`."""
        self._numbers += 1
        number = self._numbers
        waiting = self._waiting[number] = self._loop.create_future()
        if wait is not no_wait:
            self._waits[number] = wait, call
        self._send(replace(call, number=number))
        try:
            return await waiting
        finally:
            for each in (self._waiting, self._taken, self._waits):
                each.pop(number, None)

    def _send(self, call: PackedCall) -> None:
        """Have a call sent with all others that come within this tick of the event loop."""
        if not self._ticking:
            self.begin()
            self._loop.call_soon(self._hand_over)
        self._ticking.append(call)

    def _hand_over(self) -> None:
        calls, self._ticking = self._ticking, []
        with self._has_calls:
            self._calls += calls
            self._has_calls.notify()

    def close(self) -> None:
        """Have the threads end."""
        with self._has_calls:
            self._is_open = False
            self._has_calls.notify()

    # -- the event loop's side

    def _take(self, answer: GroupReplies, sent: Iterable[int]) -> None:
        """Hand on what came; what an earlier process of the shard has not answered is lost."""
        self.epoch = answer.epoch
        for reply in answer.replies:
            waiting = self._waiting.get(reply.number)
            if waiting is not None and not waiting.done():
                waiting.set_result(reply)
        for number in sent:
            if (waiting := self._waiting.get(number)) is not None and not waiting.done():
                self._taken[number] = answer.epoch
                if told := self._waits.get(number):
                    wait, call = told
                    wait(partial(self._end_hold, EndHold(call.group_id, number)))
        if self._taken:
            earlier = [each for each, epoch in self._taken.items() if epoch != answer.epoch]
            self._lose(earlier, Error.NOT_COORDINATOR)

    def _end_hold(self, end: EndHold) -> None:
        if end.held in self._waiting:
            self._send(end)

    def _lose(self, numbers: Sequence[int], error: Error) -> None:
        for number in numbers:
            self._taken.pop(number, None)
            waiting = self._waiting.get(number)
            if waiting is not None and not waiting.done():
                waiting.set_exception(Lost(error))

    # -- the threads

    def _send_calls(self) -> None:
        packets = 0
        while calls := self._next_calls():
            packets += 1
            numbers = [each.number for each in calls]
            answer = self._ways[0].ask(GroupCalls(self._host, packets, tuple(calls)))
            if answer is not None:
                self._tell(self._take, answer, numbers)
            else:
                self._tell(self._lose, numbers, Error.COORDINATOR_NOT_AVAILABLE)
                time.sleep(PAUSE_SECONDS)
        self._ways[0].close()

    def _next_calls(self) -> list[PackedCall]:
        """Wait for calls, and return all that there are by then; none: it is over."""
        with self._has_calls:
            self._has_calls.wait_for(lambda: self._calls or not self._is_open)
            calls, self._calls = self._calls[:MOST_CALLS], self._calls[MOST_CALLS:]
            return calls if self._is_open else []

    def _await_replies(self) -> None:
        while self._is_open:
            answer = self._ways[1].ask(AwaitReplies(self._host))
            if answer is not None:
                self._tell(self._take, answer, ())
            else:
                time.sleep(PAUSE_SECONDS)
        self._ways[1].close()

    def _tell(self, what: Callable[..., None], *told: object) -> None:
        """Have the event loop do something, unless it is over by now."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *told)
