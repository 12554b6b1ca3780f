"""The lines to one shard of groups: calls go out as they come in, answers come as they exist.

Two threads own a way into the actor system each. One sends packets: what has come in since the last
one was answered, so that the busier it gets the more travels together; the other waits for answers
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
from queue import SimpleQueue
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
from ...actors.shards.packets import numbered
from ..cluster.messages import SUPERVISOR, ShardsAt, Whereabouts, WhereAreShards, WhereIs
from ..cluster.run_folder import KeyRefusedError, NoNodeError, RunFolder
from .client.reply_taker import Asker, ReplyTaker, Wait, no_wait

LOGGER = logging.getLogger(__name__)
ASK_SECONDS: Final = 2.0
"""How long a shard may owe an answer before it is looked for anew."""
WHERE_SECONDS: Final = 2.0
PAUSE_SECONDS: Final = 0.1
MOST_CALLS: Final = 2_000
"""In one packet."""


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
    """Calls to one shard, each with who waits for its answer; its threads run by themselves."""

    def __init__(self, ways: tuple[WayIn, WayIn], host: int) -> None:
        """Take a way in for each thread; `host` tells this process from earlier ones."""
        self._ways, self._host = ways, host
        self._loop = asyncio.get_running_loop()
        self._callers: dict[int, ReplyTaker] = {}
        """Who waits for which answer, by number; this and the next are the event loop's alone."""
        self._taken: dict[int, int] = {}
        """Under which epoch of the shard a call was taken whose answer had to wait, by number."""
        self._numbers = 0
        self.epoch = -1
        """That of the shard's process that has answered last."""
        self._calls: list[PackedCall] = []
        """What is to be sent next."""
        self._is_sending = False
        """Whether a packet is under way, or about to be: what comes then travels with the next."""
        self._packets: SimpleQueue[Sequence[PackedCall]] = SimpleQueue()
        """To the thread that sends them; an empty one has it end."""
        self._is_open = True
        self._has_begun = False

    def begin(self) -> None:
        """Have the host be heard from now on; the first call does so as well."""
        if not self._has_begun:
            self._has_begun = True
            for run in (self._send_packets, self._await_replies):
                threading.Thread(target=run, name=run.__name__, daemon=True).start()

    async def ask(self, call: PackedCall, wait: Wait = no_wait) -> Any:
        """Return the reply to a call; raises `Lost`."""
        caller = Asker(self._loop.create_future(), wait)
        number = self.send(call, caller)
        try:
            return await caller.answered
        finally:
            self.forget(number)

    def send(self, call: PackedCall, caller: ReplyTaker) -> int:
        """Send a call, and have the caller told of its answer; return the number of the call."""
        self._numbers += 1
        self._callers[self._numbers] = caller
        self._pack(numbered(call, self._numbers))
        return self._numbers

    def forget(self, number: int) -> None:
        """Have nobody wait for the answer to a call any more."""
        self._callers.pop(number, None)
        self._taken.pop(number, None)

    def close(self) -> None:
        """Have the threads end."""
        self._is_open = False
        self._packets.put(())

    # -- the event loop's side

    def _pack(self, call: PackedCall) -> None:
        """Have a call sent with all others that come until the packet before is answered.

        If none is under way, those of this tick of the event loop travel together.
        """
        self._calls.append(call)
        if not self._is_sending:
            self._is_sending = True
            self.begin()
            self._loop.call_soon(self._send_packet)

    def _send_packet(self) -> None:
        calls, self._calls = self._calls[:MOST_CALLS], self._calls[MOST_CALLS:]
        self._is_sending = bool(calls)
        if calls:
            self._packets.put(calls)

    def _take_sent(self, answer: GroupReplies | None, calls: Sequence[PackedCall]) -> None:
        """Hand on what became of a packet; None: whether it was taken is not known.

        The next one is sent after what can be read by then: clients that are answered now may join
        it. A packet costs as much as dozens of the calls in it.
        """
        self._loop.call_later(0, self._send_packet)  # timers come after what is readable
        if answer is None:
            self._lose([each.number for each in calls], Error.COORDINATOR_NOT_AVAILABLE)
        else:
            self._take(answer, calls)

    def _take(self, answer: GroupReplies, sent: Iterable[PackedCall] = ()) -> None:
        """Hand on what came; what an earlier process of the shard has not answered is lost."""
        is_another, self.epoch = answer.epoch != self.epoch, answer.epoch
        for reply in answer.replies:
            if (caller := self._callers.pop(reply.number, None)) is not None:
                self._taken.pop(reply.number, None)
                caller.answer(reply)
        for call in sent:
            if (caller := self._callers.get(call.number)) is not None:
                self._taken[call.number] = answer.epoch
                end = EndHold(getattr(call, "group_id", ""), call.number)
                caller.let_wait(partial(self._end_hold, end))
        if is_another:
            earlier = [each for each, epoch in self._taken.items() if epoch != answer.epoch]
            self._lose(earlier, Error.NOT_COORDINATOR)

    def _end_hold(self, end: EndHold) -> None:
        if end.held in self._callers:
            self._pack(end)

    def _lose(self, numbers: Iterable[int], error: Error) -> None:
        for number in numbers:
            self._taken.pop(number, None)
            if (caller := self._callers.pop(number, None)) is not None:
                caller.lose(error)

    # -- the threads

    def _send_packets(self) -> None:
        number = 0
        while calls := self._packets.get():
            number += 1
            answer = self._ways[0].ask(GroupCalls(self._host, number, tuple(calls)))
            self._tell(self._take_sent, answer, calls)
            if answer is None:
                time.sleep(PAUSE_SECONDS)
        self._ways[0].close()

    def _await_replies(self) -> None:
        while self._is_open:
            answer = self._ways[1].ask(AwaitReplies(self._host))
            if answer is not None:
                self._tell(self._take, answer)
            else:
                time.sleep(PAUSE_SECONDS)
        self._ways[1].close()

    def _tell(self, what: Callable[..., None], *told: object) -> None:
        """Have the event loop do something, unless it is over by now."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(what, *told)
