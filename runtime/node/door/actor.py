"""The process of a group on one of many nodes: the group's owner, or the door to it.

While another node owns the group, this process is its door: it keeps copies of both logs, sends
what arrives to the owner, and delivers the answers once the copies hold what they rest on. To
workers, REST and the supervisor it is the group's process all the same, at the same address.

When there is a reason to (`claims`), it claims both logs. If that counts, it rebuilds the group
from the copies, which have all by then, and is the owner without being started anew. The way back
is another one: an owner that was fenced or has resigned has decided what may not count, so its
process ends, and the next one begins as the door.
"""

import logging
import math
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from zlib import crc32

from ....actors.group.group_shard import GroupShard
from ....actors.messages.commands import CopiesView, HeardNodes, NodeHeartbeat, NodeReport
from ....actors.messages.groups import FindStream
from ....actors.shards.host_actor import (
    EXIT_FENCED,
    EXIT_LOG,
    GroupOpened,
    OpenGroup,
    Ping,
    Pong,
    clocks,
)
from ....actors.shards.hosted_logs import HostedLogs, LogCopies
from ....actors.transport.actor import Address, Failure
from ....actors.transport.ports import HostPort
from ....events.catalogue import GENERATION, entry_key
from ....events.entries.codec import CONTROL, OFFSETS, decode, encode
from ....events.log.errors import LogError
from ....events.records import OwnerBegan, OwnerResigned
from ....events.stores.opening import StoreSpec
from ....events.stores.port import StoreAwayError, StoreOwner
from ....events.stores.stored_log import StoredLog
from ...cluster.kafka_security import KafkaSecurity
from ...cluster.messages import (
    DescribeOwnership,
    GroupGivenUp,
    OwnerAt,
    OwnershipView,
    Undecided,
)
from ..assignors.serving import Served, ServingGroupActor
from .claims import RANKS, RANKS_PER_SILENCE, ClaimRule, RoleEnding, RoleTracker, Sight
from .delivery import AnswersAhead, LogEnds
from .following import (
    CHECK_SECONDS,
    CopiesMoved,
    FollowingFailed,
    OwnerSeen,
    StoreFollower,
    StoreLost,
)
from .line_opening import LineOpening
from .nodes import (
    BEAT_SECONDS,
    OTHERS_LIVED_MS,
    UNSERVED_BEATS,
    NodeReports,
    OwnListener,
    listeners_of,
)

if TYPE_CHECKING:
    from .connection import LineAnswer

LOGGER = logging.getLogger(__name__)
News = CopiesMoved | OwnerSeen | StoreLost | FollowingFailed
LAST_WORDS_SECONDS = 0.2
"""How long the process of an owner that has resigned lives, so that its answers leave."""


def load_libraries(store: StoreSpec, security: KafkaSecurity | None) -> None:
    """Import what the group's process on one of many nodes needs, for all that are forked later.

    It takes longer than all else until a process that was killed owns the group again. What cannot
    be imported is told by that process.
    """
    with suppress(LogError):
        store.load()
    if security is not None and security.nodes:
        from . import line  # noqa: F401, PLC0415


@dataclass(frozen=True, slots=True)
class OpenOnNode:
    """To the actor: open the group of a cluster of many nodes, or the door to it."""

    served: Served
    security: KafkaSecurity | None
    """How nodes know each other; None: this one has no listener, and no line to others."""
    place: str = ""
    """What the urls of this node's workers begin with."""


@dataclass(frozen=True, slots=True)
class CheckStore:
    """To itself: look whether the engine may lose what counts."""

    log: StoredLog


@dataclass(frozen=True, slots=True)
class BeatToOwner:
    """To itself: have the owner hear of this node."""


@dataclass(frozen=True, slots=True)
class EndProcess:
    """To itself: the last messages have left."""

    code: int


class Door:
    """The copies of a group that another node owns, and the line to that node."""

    def __init__(
        self,
        order: OpenGroup,
        store: StoreSpec,
        lines: LineOpening,
        actor: "ClusterGroupActor",
    ) -> None:
        """Open the copies, and follow the store; raises `LogError`."""
        self.order, self.store = order, store
        self.lines, self.line = lines, lines.open()
        self.copies = LogCopies.open(order.folder, order.group_id, (CONTROL, OFFSETS), store)
        rule = ClaimRule(store.node, store.folder, store.silence_seconds, lines.is_set)
        self.role = RoleTracker(rule)
        self.owner: StoreOwner | None = None
        """The last claim that was seen."""
        self._actor = actor
        self._following = self._begin_following()
        self.answers = AnswersAhead["LineAnswer"](self._following.ends())

    def ends(self) -> LogEnds:
        """Return the ends of both copies."""
        return self._following.ends()

    def stop_following(self) -> None:
        """End the threads: the copies are the caller's alone."""
        self._following.stop()

    def follow_on(self) -> None:
        """Follow the store again, after a claim that did not count."""
        self._following = self._begin_following()

    def take_sight(self, news: OwnerSeen) -> float | None:
        """Note who owns the group; return the silence that a claim asks for if one is due."""
        self.owner = news.owner
        if self.line is not None:
            self.line.move(self.owner_place)
        record, generation = self._last_record()
        if generation > GENERATION:
            return None  # a later version owned the group: it may have written what is unknown here
        rank = crc32(self.store.folder.encode()) % RANKS
        sight = Sight(news.is_whole, news.owner, record, rank)
        if self.role.would_claim(sight) and not self._actor.listener.is_open():
            sight = replace(sight, rank=rank + RANKS_PER_SILENCE)
        return self.role.look(sight)

    @property
    def flaw(self) -> str:
        """The reason why the store is not followed for now; empty: it is."""
        return self._following.flaw

    def describe_copies(self) -> CopiesView:
        """Return how far the copies are here."""
        return self._following.describe(self.answers.missing)

    def describe(self) -> OwnershipView:
        """Return who owns the group, and how far the copies are here."""
        copies = self.describe_copies()
        view = replace(describe_node(self.store), owner="", owner_address="", copies=copies)
        view = replace(view, flaw=self.flaw)
        if self.owner is None:
            return view
        epoch, (node, address, _), silent_seconds = self.owner
        view = replace(view, owner=node, owner_address=address, owner_epoch=epoch)
        return replace(view, silent_ms=round(silent_seconds * 1_000))

    def retry_line(self) -> None:
        """Open the line if that was not possible before."""
        if self.line is None and (line := self.lines.open()) is not None:
            self.line = line
            line.move(self.owner_place)

    def close(self) -> "Sequence[LineAnswer]":
        """Close the line; return the end of all messages under way. The copies stay open."""
        return () if self.line is None else self.line.close()

    def _begin_following(self) -> StoreFollower:
        kept, is_unsafe = self.order.retention, self.store.is_unsafe
        return StoreFollower(self.copies, kept, self._actor.post, is_unsafe=is_unsafe)

    @property
    def owner_place(self) -> HostPort | None:
        """The listener of the node that owns the group; None: none is known, or it is this one."""
        if self.owner is None or self.owner.claimant.folder == self.store.folder:
            return None
        return _place(self.owner.claimant.address)

    def _last_record(self) -> tuple[OwnerBegan | OwnerResigned | None, int]:
        """Return the last record about owners, and the highest generation that one writes."""
        kinds = (OwnerBegan, OwnerResigned)
        entries = [self.copies.control.get(*entry_key(kind, ())) for kind in kinds]
        found = sorted((each for each in entries if each), key=lambda each: each.offset)
        records = [decode(each) for each in found]
        owners = [each for each in records if isinstance(each, OwnerBegan | OwnerResigned)]
        began = [each.generation for each in owners if isinstance(each, OwnerBegan)]
        return owners[-1] if owners else None, max(began, default=0)


def _place(address: str) -> HostPort | None:
    host, _, port = address.rpartition(":")
    return HostPort(host, int(port)) if port.isdigit() else None


def describe_node(store: StoreSpec | None) -> OwnershipView:
    """Return the ownership of a group that this node owns, as it would in this store."""
    if store is None:
        return OwnershipView()
    own = store.node, store.address, store.version
    return OwnershipView(store.kind, *own, store.node, store.address)


class ClusterGroupActor(ServingGroupActor):
    """The process of the group: with a store it is the owner, or the door to it."""

    def __init__(self) -> None:
        super().__init__()
        self._door: Door | None = None
        """None while this node owns the group, or has no store."""
        self._security: KafkaSecurity | None = None
        self._supervisor: Address = None
        self._is_open = False
        """Whether the supervisor was told that this process takes requests."""
        self._store: StoreSpec | None = None
        """Where the commits of the group count; None: on this host."""
        self._has_resigned = False
        self._place = ""
        """What the urls of this node's workers begin with."""
        self._nodes = NodeReports()
        self.listener = OwnListener(None)
        """This node's own; with a store it is known once the group is opened."""
        self._unserved = 0
        """For how many heartbeats of nodes the listener of this owner took no connections."""
        self._told_at: OwnerAt | None = None
        """Where clients find groups, as the supervisor was told; None: nothing yet."""

    def receive(self, message: object, sender: Address) -> None:
        """Handle a message as the group's process, or send it to the owner."""
        if isinstance(message, OpenOnNode):
            self._security, self._supervisor = message.security, sender
            self._place = message.place
            message = message.served
        if isinstance(message, News):
            self._take_news(message)
        elif isinstance(message, DescribeOwnership):
            view = self._door.describe() if self._door else self._describe_own()
            self.send(sender, replace(view, nodes=self._nodes.reports(clocks().steady_ms)))
        elif self._door is None:
            super().receive(message, sender)
        elif isinstance(message, Ping):
            self.send(sender, Pong())
        else:
            self._pass_on(self._door, message, sender)

    def watched(self) -> Sequence[int]:
        """Return the descriptors of the hosts' streams, or that of the line to the owner."""
        if self._door is None:
            return super().watched()
        return () if self._door.line is None else (self._door.line.fileno(),)

    def readable(self, numbers: Sequence[int]) -> None:
        """Handle the calls of a host, or the owner's answers."""
        if self._door is None:
            watched = super().watched()
            if hosts := [each for each in numbers if each in watched]:
                super().readable(hosts)  # the line was watched as well, until the claim
        elif self._door.line is not None:
            for answer in self._door.line.answers():
                self._take_answer(self._door, answer)

    def woken(self, payload: object) -> None:
        """Handle timers; an owner that has resigned handles nothing any more."""
        if isinstance(payload, EndProcess):
            self.die(payload.code)
        elif isinstance(payload, CheckStore):
            self._check_store(payload)
        elif isinstance(payload, BeatToOwner):
            self._note_own_report()
            self.wake_after(BEAT_SECONDS, payload)
        elif not self._has_resigned:
            super().woken(payload)
            self._look_for_resignation()

    def stopping(self) -> None:
        """Resign if this node owns the group, so that another one need not wait; close all."""
        if self._door is not None:
            self._door.stop_following()
            self._door.close()
            self._door.copies.close()
        elif self._group_host is not None and self._logs.is_stored and not self._has_resigned:
            self._resign()
        super().stopping()

    # -- the door

    def open_group(self, order: OpenGroup, sender: Address) -> None:
        """Open the group; with a store, be its door until there is a reason to claim it.

        The supervisor hears of it with the first news of the store: a copy that does not fit it has
        the node refuse to start.
        """
        if order.store is None:
            super().open_group(order, sender)
        elif self._door is None and self._group_host is None:
            self._store, self.listener = order.store, OwnListener(_place(order.store.address))
            self._nodes.cluster = order.store.cluster
            lines = LineOpening(self._security, order.folder.parent.parent)
            self._door = Door(order, order.store, lines, self)
            self.wake_after(0, BeatToOwner())

    def opened(self, order: OpenGroup) -> GroupOpened:
        """Return that this process takes requests."""
        if self._door is None:
            return super().opened(order)
        end = self._door.copies.control.end
        flaw = self._door.flaw
        return GroupOpened(order.group_id, end, os.getpid(), is_owner=False, flaw=flaw)

    def _pass_on(self, door: Door, message: object, sender: Address) -> None:
        owner = door.owner.claimant if door.owner else None
        if isinstance(message, FindStream):
            at = f"{owner.node} at {owner.address}" if owner else "another node"
            self._refuse(sender, f"the group is owned by {at}")
        elif owner is None or owner.folder == door.store.folder:
            self._refuse(sender, "no node owns the group at this moment: ask again")
        elif door.line is None:
            at = f"{owner.node} at {owner.address}" if owner.address else owner.node
            why = f"this node has no line to {at}, which owns the group: {door.lines.flaw}"
            self._refuse(sender, why)
        elif door.line.carries(message):
            door.line.send(message, sender)
        else:
            self.send(sender, Failure(f"a group does not understand {type(message).__name__}"))

    def _refuse(self, sender: Address, why: str, *, is_sent: bool = False) -> None:
        """Answer that a message is not decided: its sender asks again."""
        if self._door is not None and self._door.flaw:
            why = f"{why}; this node does not follow the store: {self._door.flaw}"
        self.send(sender, Undecided(why, is_sent))

    def _take_answer(self, door: Door, answer: "LineAnswer") -> None:
        if answer.sender is None:  # the answer to this node's own heartbeat, if there is one
            if isinstance(answer.reply, HeardNodes):
                self._note_nodes(answer.reply.nodes)
        elif answer.reply is not None:
            for each in door.answers.arrive(answer, answer.ends):
                self.send(each.sender, each.reply)
        elif answer.why:
            why = f"the owner of the group did not answer: {answer.why}"
            self._refuse(answer.sender, why, is_sent=answer.is_sent)

    def _take_news(self, news: News) -> None:
        door = self._door
        if door is None:
            return  # it is the owner by now
        if isinstance(news, FollowingFailed):
            LOGGER.critical("the group cannot be followed: %s", news.error)
            self.send(self._supervisor, Failure(str(news.error)))
            self.wake_after(LAST_WORDS_SECONDS, EndProcess(EXIT_LOG))
            return
        was_open, self._is_open = self._is_open, True
        if not was_open:
            self.send(self._supervisor, self.opened(door.order))
        for each in door.answers.advance(door.ends()):
            self.send(each.sender, each.reply)
        if isinstance(news, OwnerSeen):
            former = door.owner.epoch if door.owner else 0
            silence = door.take_sight(news)
            self._tell_clients()
            if silence is not None:
                self._claim(door, silence)
            elif was_open and door.owner is not None and door.owner.epoch > former:
                self.send(self._supervisor, self.opened(door.order))  # what it has said is repeated

    # -- the nodes

    def hear_of(self, beat: NodeHeartbeat) -> HeardNodes:
        """Note that another node lives; return which nodes do."""
        assert self._store is not None  # noqa: S101  # it came from a node
        self._note_nodes((self._report(self._store), beat.node))
        return HeardNodes(self._nodes.reports(clocks().steady_ms))

    def _note_own_report(self) -> None:
        """Send the owner what this node reports; the owner itself looks whether it can serve."""
        assert self._store is not None  # noqa: S101  # as the timer is set
        own, door = self._report(self._store), self._door
        self._note_nodes((own,))
        if door is None:
            self._give_up_unserved(self._store)
            return
        door.retry_line()
        if door.line is not None and door.owner_place is not None:
            door.line.send(NodeHeartbeat(door.order.group_id, own), None)

    def _give_up_unserved(self, store: StoreSpec) -> None:
        """Give the group up if no other node could reach this one for long, and one lived before.

        Its listener cannot start, say, because its certificate is not valid any more.
        """
        self._unserved = 0 if self.listener.is_open() else self._unserved + 1
        now_ms = clocks().steady_ms
        others = (each for each in self._nodes.reports(now_ms) if each.name != store.node)
        has_other = any(each.heard_ms < OTHERS_LIVED_MS for each in others)
        if self._unserved >= UNSERVED_BEATS and has_other and not self._has_resigned:
            why = "this node gives the group up: its listener takes no connections"
            LOGGER.warning("%s", why)
            self._resign()
            self._end_soon(why)

    def _report(self, store: StoreSpec) -> NodeReport:
        copies = self._door.describe_copies() if self._door else None
        about = store.node, store.address, self._place, store.version, copies
        return NodeReport(*about, cluster=store.cluster)

    def _note_nodes(self, reports: Iterable[NodeReport]) -> None:
        now_ms = clocks().steady_ms
        for each in reports:
            self._nodes.note(each, now_ms)
        self._tell_clients()

    def _tell_clients(self) -> None:
        """Tell the supervisor where Kafka's clients find groups, if that is new."""
        door = self._door
        owner = self._store.node if self._store else ""
        if door is not None:
            owner = door.owner.claimant.node if door.owner else ""
        place = door.owner_place if door else None
        others = listeners_of(self._nodes.reports(clocks().steady_ms), owner)
        at = OwnerAt(f"{place.host}:{place.port}" if place else "", others)
        if at != self._told_at:
            self._told_at = at
            self.send(self._supervisor, at)

    # -- the owner

    def _claim(self, door: Door, silence_seconds: float) -> None:
        """Claim both logs; if that counts, be the owner."""
        began, former = time.perf_counter(), door.owner
        door.stop_following()
        try:
            epoch = former.epoch if former else 0
            logs = door.copies.claim(door.store.claimant, silence_seconds, epoch)
        except StoreAwayError as error:
            LOGGER.warning("this node could not claim the group: %s", error)
            logs = None
        if logs is None:
            door.role.end(RoleEnding.REFUSED)
            door.follow_on()
            return
        door.role.begin()
        self._door = None
        self._tell_clients()
        for each in door.close():  # who waits for the former owner asks again at once
            self._take_answer(door, each)
        hosted = HostedLogs(logs, door.order.retention)
        silent = 0.0 if former is None or silence_seconds == 0 else former.silent_seconds
        door.copies.control.check_store(is_unsafe=door.store.is_unsafe)  # topics may be new
        self._write_claim(hosted, door.store, silent)
        self.serve(door.order, hosted, began)
        self.wake_after(CHECK_SECONDS, CheckStore(door.copies.control))
        self.send(self._supervisor, self.opened(door.order))

    def _describe_own(self) -> OwnershipView:
        """Return the ownership of the group here; another node may have it if the store is lost."""
        view, silent_ms = describe_node(self._store), self.unconfirmed_ms
        if self._store is None:
            return view
        if silent_ms >= self._store.silence_seconds * 1_000:
            return replace(view, owner="", owner_address="", silent_ms=silent_ms)
        return replace(view, owner_epoch=self._logs.control.epoch, silent_ms=silent_ms)

    def _write_claim(self, logs: HostedLogs, store: StoreSpec, silent_seconds: float) -> None:
        now, epoch, who = clocks(), logs.control.epoch, store.claimant
        silence_ms = round(silent_seconds * 1_000)
        about = who.node, who.address, store.version, silence_ms, now.wall_ms, GENERATION
        logs.append([encode(OwnerBegan(epoch, *about))], now)
        text = "this node owns the group, with owner epoch %d, after %.1f s of silence"
        LOGGER.info(text, epoch, silent_seconds)

    def _check_store(self, payload: CheckStore) -> None:
        """Log how the engine may lose what counts: an owner goes on all the same."""
        try:
            payload.log.check_store(is_unsafe=True)
        except StoreAwayError as error:
            LOGGER.warning("the store could not be checked: %s", error)
        self.wake_after(CHECK_SECONDS, payload)

    def end_if_unconfirmed(self) -> None:
        """End once another node may own the group: at this one nobody is to wait for answers.

        The next process is a door, and claims the group again if nobody else has.
        """
        silence_ms = self._store.silence_seconds * 1_000 if self._store else math.inf
        if self.unconfirmed_ms >= silence_ms and not self._has_resigned:
            seconds = self.unconfirmed_ms / 1_000
            why = f"the store has not confirmed for {seconds:.1f} s that this node owns the group"
            LOGGER.warning("%s", why)
            self._end_soon(why)

    def _look_for_resignation(self) -> None:
        """End soon if the group was given up by a command."""
        if self._group_host is None or not self._logs.is_stored:
            return
        assert isinstance(self._group_host, GroupShard)  # noqa: S101  # as it is opened
        ownership = self._group_host.group.ownership
        if isinstance(ownership, OwnerResigned) and ownership.epoch == self._logs.control.epoch:
            self._end_soon(f"this node has given the group up, to {ownership.to or 'any other'}")

    def _end_soon(self, why: str) -> None:
        self._has_resigned = True
        self.send(self._supervisor, GroupGivenUp(why))
        self.wake_after(LAST_WORDS_SECONDS, EndProcess(EXIT_FENCED))

    def _resign(self) -> None:
        """Write the last record of the claim; what fails only costs the others their wait."""
        now, epoch = clocks(), self._logs.control.epoch
        try:
            node = self._store.node if self._store else ""
            record = OwnerResigned(epoch, node, time_ms=now.wall_ms)
            self._logs.append([encode(record)], now)
        except Exception as error:  # noqa: BLE001  # the process ends in any case
            LOGGER.warning("this node ends without having given the group up: %s", error)
