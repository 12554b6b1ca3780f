"""The connection of one client: requests are answered one at a time, in order, as by a broker.

Requests of group APIs are served here. All others are proxied to a broker, on a connection of this
client's own that is opened at its first use. Proxied frames are copied in pieces, and never in
memory as a whole, except for responses that are rewritten.
"""

import asyncio
import logging
import ssl
import struct
from asyncio import sleep
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from ...actors.messages.errors import Error
from ...actors.messages.groups import ConnectCall, HostCall, NodeReply
from ...actors.transport.ports import HostPort
from .broker.responses import (
    MapBroker,
    NodePlaces,
    find_group_coordinator,
    is_for_groups,
    rewrite_response,
)
from .broker.upstream import BrokerUnavailable, Upstream
from .broker.without_brokers import answer_without_broker, refuse_without_broker
from .client.reply_handler import OnHold, ignore_hold
from .client.stream import FrameReceiver, Relay, Stream
from .client.timeout import ConnectionState, ConnectionTimeout
from .counts import Counts
from .groups import Groups
from .security.access import ListenerAccess
from .security.acls import CLUSTER, AclClient, AclOperation, ResourceKind
from .security.mechanisms import AuthenticationFailed
from .security.quotas import with_throttle
from .security.rights import Rights, ask_with_rights
from .security.session import LONGEST_BEFORE, ClientSession
from .synchronous import LastRequest, ParsedRequest, SynchronousHeartbeats
from .wire.bounds import (
    FRAME_SECONDS,
    IDLE_SECONDS,
    LONGEST_DECODED,
    LONGEST_FRAME,
    LONGEST_OF_NODE,
    LONGEST_REWRITTEN,
    NOT_AUTHENTICATED,
    PIECE,
    SESSION_OVER,
    SHORTEST_FRAME,
    SLOWEST,
    TLS,
    Budgets,
    BudgetShare,
    FrameRefused,
)
from .wire.calls.asks import NodeAsk, ask_in, flaw_in
from .wire.calls.configs import answer as answer_configs
from .wire.calls.configs import log_changes, split_request
from .wire.calls.dispatch import answer_of
from .wire.calls.offsets import unknown_topic_ids
from .wire.frames import (
    HEAD,
    LENGTH,
    Head,
    is_known,
    read_head,
    read_request,
    read_response,
    write_request,
    write_response,
)
from .wire.lengths import expects_answer
from .wire.served import (
    CONNECT_ASK,
    CONNECT_HEARTBEAT,
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    HEARTBEAT,
    LIST_CONFIG_RESOURCES,
    OF_EVERYBODY,
    PRODUCE,
    REWRITTEN,
    SASL,
    SERVED,
    SPLIT,
    is_served,
)

LOGGER = logging.getLogger(__name__)
MTLS: Final = "mtls"
"""How clients prove who they are by their certificates, in the label of a metric."""
FIRST_BYTES: Final = 4_096
"""The size of the first part of a Produce, in bytes: `acks` is in it, after the ids."""
HEARTBEATS: Final = frozenset({HEARTBEAT, CONSUMER_GROUP_HEARTBEAT, CONNECT_HEARTBEAT, CONNECT_ASK})
"""The APIs whose requests a group may hold (long poll); a node asks for its workers' heartbeats."""
UNANSWERED: Final = frozenset({CONNECT_HEARTBEAT, CONNECT_ASK})
"""The APIs of which the workers' group leaves some requests unanswered, in their own form."""


class ListenerPort:
    """The settings that all connections of one port share."""

    def __init__(
        self, here: HostPort, brokers: Sequence[HostPort], map_broker: MapBroker, *, lists: bool
    ) -> None:
        """Share the group coordinator's address `here`; without `lists` ListGroups is empty."""
        self.here, self.brokers, self.map_broker, self.lists = here, brokers, map_broker, lists


class ClientConnection:
    """One client's connection, from its first byte to its last."""

    def __init__(
        self,
        stream: Stream,
        shared: ListenerPort,
        groups: Groups,
        budgets: Budgets,
        counts: Counts,
        access: ListenerAccess,
    ) -> None:
        self._stream = stream
        self._shared, self._groups, self._counts = shared, groups, counts
        self._budget, self._receiver = budgets.answering, FrameReceiver(stream, budgets.receiving)
        self._access = access
        self._upstream = Upstream(shared.brokers, access.upstream_of_clients)
        seconds = access.session_seconds
        self.address = str(stream.transport.get_extra_info("peername")[0])
        self._session = ClientSession(
            access.authenticator, seconds, self.address, self._upstream.ask
        )
        self._limit, self._last = ConnectionTimeout(), LastRequest()
        self._task: asyncio.Task[None] | None = None
        self._no_node = access.flaw_in_node(self._session.principal, None)
        """Why the client is no node; "": it is one."""
        self._pause = 0.0
        """For how many seconds nothing more is read after the current request."""
        self._heartbeats = SynchronousHeartbeats(stream, self._last, self._limit, groups, counts)
        if access.quotas is not None:
            self._heartbeats.switch_off()  # each of its requests counts

    async def serve(self) -> None:
        """Answer requests until the client disconnects, or sends an invalid request."""
        self._task = asyncio.current_task()
        try:
            await self._encrypt()
            while await self._answer_next():
                pass
        except FrameRefused as refused:
            self._count_refusal(refused)
        except BrokerUnavailable as away:
            self._counts.warn("the broker cannot be reached", str(away))
        except (asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            pass  # the client or the broker has disconnected, or the listener stops
        finally:
            self._heartbeats.close()
            self._upstream.close()
            self._stream.transport.abort()

    def renew_rights(self) -> None:
        """Look up the client's rights at its next request, also if that is the last one again."""
        self._last.forget()

    def close(self) -> None:
        """Close the connection at once, and cancel its task."""
        self._stream.transport.abort()
        if self._task is not None:
            self._task.cancel()

    def close_if_late(self, now: float) -> None:
        """Close the connection if its timeout is over, or its session."""
        if self._session.is_over(now):
            # Clients leave connections that they do not use any more: no login has failed.
            reason = SESSION_OVER if self._session.principal else NOT_AUTHENTICATED
            self._count_refusal(FrameRefused(reason, "in time"))
            self.close()
        elif self._limit.is_over(now) or self._receiver.is_late(now):
            state = self._limit.state
            if state is not ConnectionState.IDLE:
                reason = "slow reader" if state is ConnectionState.WRITING else "half-sent"
                self._count_refusal(FrameRefused(reason, state.value))
            self.close()

    def _count_refusal(self, refused: FrameRefused) -> None:
        self._counts.count_refusal(refused, self.address)
        if refused.reason == NOT_AUTHENTICATED:
            is_by_certificate = self._access.authenticator is None
            mechanism = MTLS if is_by_certificate else self._session.mechanism
            self._counts.count_failed_authentication(mechanism)

    async def _encrypt(self) -> None:
        """Begin TLS with the certificate of now, if the listener has one."""
        if self._access.tls is None:
            return
        self._limit.wait_for(ConnectionState.READING, FRAME_SECONDS)
        try:
            await self._stream.start_tls(self._access.tls.context(), FRAME_SECONDS)
        except ConnectionError:
            raise  # it has disconnected without a word, as probes do
        except (ssl.SSLError, OSError, TimeoutError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise FrameRefused(TLS, str(reason)) from None
        if self._access.authenticator is None:
            certificate = self._stream.certificate
            self._session.principal = self._access.name_by_certificate(certificate)
            self._no_node = self._access.flaw_in_node(self._session.principal, certificate)
            if not self._no_node:
                self._heartbeats.serve_node()
        self._limit.wait_for_request()

    async def _answer_next(self) -> bool:
        """Answer the next request; return False if the client has disconnected instead."""
        start = await self._stream.read(LENGTH.size)
        await self._heartbeats.wait_for_answer()
        if not start:
            return False
        self._limit.wait_for(ConnectionState.READING, FRAME_SECONDS)
        if len(start) < LENGTH.size:
            start += await self._stream.read_exactly(LENGTH.size - len(start))
        (length,) = LENGTH.unpack(start)
        if self._session.is_raw:
            await self._answer_raw(length)
        else:
            await self._answer_request(length)
            await self._keep_pause()
        self._limit.wait_for_request()
        return True

    async def _answer_request(self, length: int) -> None:
        if not SHORTEST_FRAME <= length <= LONGEST_FRAME:
            raise FrameRefused("length", str(length))
        self._limit.wait_for(ConnectionState.READING, FRAME_SECONDS + length / SLOWEST)
        head = read_head(first := await self._stream.read_exactly(HEAD.size))
        self._counts.count_request(head.api)
        if not (is_served(head.api, head.version) and is_known(head.api)):
            raise FrameRefused("unknown call", f"{head.api} in version {head.version}")
        if not self._session.may_ask(head.api, length):
            raise FrameRefused(NOT_AUTHENTICATED, f"call {head.api} of {length} bytes")
        self._use_quota(1, length)
        if head.api in SERVED:
            await self._serve_here(head, length, first)
        elif head.api in SASL:
            await self._authenticate(head, length, first)
        elif head.api in REWRITTEN and head.version <= REWRITTEN[head.api][1]:
            await self._rewrite(head, length, first)
        elif head.api in SPLIT:
            await self._answer_in_parts(head, length, first)
        else:
            self._check_proxied(head.api)
            await self._proxy(head, length, first)

    # -- authentication

    async def _authenticate(self, head: Head, length: int, first: bytes) -> None:
        """Answer a request of authentication; raises `FrameRefused` after a failure."""
        if length > LONGEST_BEFORE:
            raise FrameRefused("too long to decode", f"{length} bytes")
        frame, _ = await self._receiver.read(first, length)
        self._limit.wait_for(ConnectionState.ANSWERING)
        answer = await self._session.answer(read_request(head, frame))
        await self._write(write_response(head, answer.message))
        if answer.failure:
            self._refuse_client(answer.failure)

    async def _answer_raw(self, length: int) -> None:
        """Answer a message of authentication that has no header."""
        if not 0 <= length <= LONGEST_BEFORE:
            raise FrameRefused("length", str(length))
        message = await self._stream.read_exactly(length)
        self._limit.wait_for(ConnectionState.ANSWERING)
        try:
            reply = await self._session.answer_raw(message)
        except AuthenticationFailed as failed:
            self._refuse_client(failed.reason)
        else:
            await self._write(LENGTH.pack(len(reply)) + reply)

    def _refuse_client(self, failure: str) -> NoReturn:
        raise FrameRefused(NOT_AUTHENTICATED, f"{self._session.mechanism}: {failure}")

    # -- requests that are served here

    async def _serve_here(self, head: Head, length: int, first: bytes) -> None:
        is_of_node = head.api == CONNECT_ASK and not self._no_node
        _check_decoded(length, LONGEST_OF_NODE if is_of_node else LONGEST_DECODED)
        frame, received = await self._receiver.read(first, length)
        try:
            await self._budget.take(length)
        finally:
            received.give_back()
        share = BudgetShare(self._budget, length)
        try:
            parsed = self._parse(head, frame)
            if unknown := unknown_topic_ids(parsed.request):
                await self._groups.wait_for_topic_ids(unknown)
                parsed = self._parse(head, frame)
            del frame
            # The client times out before this.
            seconds = IDLE_SECONDS if head.api in UNANSWERED else 0.0
            self._limit.wait_for(ConnectionState.ANSWERING, seconds)
            on_hold = partial(self._hold, share, head.api)
            replies = await self._ask(head.api, parsed.calls, on_hold)
        finally:
            share.give_back()
        await self._answer(head, answer_of(parsed.request, replies))

    def _parse(self, head: Head, frame: bytes) -> ParsedRequest:
        topic_ids = self._groups.topic_ids
        return self._last.read(head, frame, f"/{self.address}", self._add_rights, topic_ids)

    async def _ask(self, api: int, calls: Sequence[Any], on_hold: OnHold) -> Sequence[Any]:
        """Return the replies to the calls of a request, as far as the client has the rights."""

        async def ask(permitted: Sequence[Any]) -> Sequence[Any]:
            # A tool asks every broker for groups, but any one of them for what has configs.
            has_groups = self._shared.lists and self._groups.owner is None
            lists = has_groups or api == LIST_CONFIG_RESOURCES
            return await self._groups.ask(permitted, on_hold, lists=lists)

        if calls and isinstance(calls[0], NodeAsk):
            return [await self._ask_for_node(calls[0], on_hold)]
        member_ask = ask_in(calls)
        if flaw := flaw_in(member_ask):
            self._counts.count_unreadable(flaw, self.address)
        elif member_ask is not None:
            calls = [ConnectCall(self._access.secrets.conceal(member_ask))]
        if (rights := self._find_rights()) is None:
            replies = await ask(calls)
        else:
            replies, missing = await ask_with_rights(rights, calls, ask)
            if missing:
                self._last.forget()
                self._counts.count_denial(api, self._session.principal, missing)
        if member_ask is None:
            return replies
        is_private = self._access.tls is not None or HostPort(self.address, 0).is_loopback
        may_have = (
            is_private and rights is not None and rights.may_have_secrets(member_ask.group_id)
        )
        return [self._access.secrets.show(each, may_have=may_have) for each in replies]

    async def _ask_for_node(self, node_ask: NodeAsk, on_hold: OnHold) -> NodeReply:
        """Return the reply to a node's message; raises `FrameRefused` if it is none."""
        if self._no_node:
            self._counts.count_denial(CONNECT_ASK, self._session.principal, "speak for a node")
            return NodeReply(error=Error.GROUP_AUTHORIZATION_FAILED, message=self._no_node)
        (reply,) = await self._groups.ask([node_ask.decode()], on_hold, lists=False)
        assert isinstance(reply, NodeReply)  # noqa: S101  # as the call is
        return reply

    def _find_rights(self) -> Rights | None:
        """Return the rights of the client; None: there are no rules."""
        if self._access.authorizer is None:
            return None
        return Rights(self._access.authorizer, AclClient(self._session.principal, self.address))

    def _add_rights(self, call: HostCall) -> HostCall:
        return call if (rights := self._find_rights()) is None else rights.add_to(call)

    def _may_find(self, group_id: str) -> bool:
        rights = self._find_rights()
        return rights is None or rights.has(AclOperation.DESCRIBE, ResourceKind.GROUP, group_id)

    def _hold(self, share: BudgetShare, api: int, end_hold: Callable[[], None]) -> None:
        """Return the memory of a held request; a heartbeat is held until its client sends more."""
        share.give_back()
        if api in HEARTBEATS:
            self._stream.notify_on_input(end_hold)

    # -- responses that are rewritten

    @property
    def _places(self) -> NodePlaces:
        """Where the groups are: at the node that owns them, which may be another one."""
        return NodePlaces(self._groups.owner or self._shared.here, self._groups.other_nodes)

    async def _rewrite(self, head: Head, length: int, first: bytes) -> None:
        """Forward a request, and rewrite the response.

        The broker validates the request, which may have librdkafka's unused bytes.
        """
        _check_decoded(length)
        frame, received = await self._receiver.read(first, length)
        received.give_back()
        if head.api == FIND_COORDINATOR:
            request = read_request(head, frame)
            if is_for_groups(request):
                at = self._places.coordinator
                response = find_group_coordinator(request, at, self._may_find)
                await self._write(write_response(head, response))
                return
        message = await self._ask_broker(head, frame)
        map_broker, hidden = self._shared.map_broker, self._groups.hidden_apis
        rewritten = rewrite_response(head.api, message, self._places, map_broker, hidden)
        await self._answer(head, rewritten)

    async def _ask_broker(self, head: Head, frame: bytes) -> Any:
        """Return the broker's response to a frame, or that of none."""
        if not self._shared.brokers:
            # librdkafka writes more into Metadata than its version has.
            request = read_request(head, frame, is_exact=False)
            return answer_without_broker(request, self._places)
        broker = await self._upstream.open()
        self._limit.wait_for(ConnectionState.ANSWERING)
        await broker.write(LENGTH.pack(len(frame)) + frame)
        size = await _length_from(broker, LONGEST_REWRITTEN)
        return read_response(head, await _all_from(broker, size))

    async def _answer_in_parts(self, head: Head, length: int, first: bytes) -> None:
        """Answer a request for configs: those of groups here, all others by a broker."""
        _check_decoded(length)
        frame, received = await self._receiver.read(first, length)
        received.give_back()
        split = split_request(read_request(head, frame), self._session.principal)
        if split.rest is not None:
            self._check_proxied(head.api)
        if not split.calls and self._shared.brokers:
            broker = await self._upstream.open()
            await broker.write(LENGTH.pack(length) + frame)
            await self._relay_answer(broker)
            return
        self._limit.wait_for(ConnectionState.ANSWERING)
        replies = await self._ask(head.api, split.permitted, ignore_hold)
        log_changes(split, replies)
        rest = None if split.rest is None else write_request(split.rest)
        theirs = None if rest is None else await self._ask_broker(head, rest)
        await self._answer(head, answer_configs(split, replies, theirs))

    # -- requests that are proxied

    def _check_proxied(self, api: int) -> None:
        """Raise `FrameRefused` for a request that administers the brokers as the node itself."""
        rights = None if self._access.is_by_broker else self._find_rights()
        if rights is None or api in OF_EVERYBODY:
            return
        if not rights.has(AclOperation.ALTER, ResourceKind.CLUSTER, CLUSTER):
            self._counts.count_denial(api, self._session.principal, f"alter the cluster by {api}")
            raise FrameRefused("not authorized", f"call {api}")

    async def _proxy(self, head: Head, length: int, first: bytes) -> None:
        if not self._shared.brokers:
            _check_decoded(length)
            await self._stream.read_exactly(length - len(first))
            await self._write(write_response(head, refuse_without_broker(head)))
            return
        broker = await self._upstream.open()
        left, is_answered = length - len(first), True
        if head.api == PRODUCE:
            more = await self._stream.read_exactly(min(left, FIRST_BYTES))
            first, left = first + more, left - len(more)
            is_answered = expects_answer(head.version, first)
        await broker.write(LENGTH.pack(length) + first)
        await _copy(self._stream, broker, left)
        if is_answered:
            await self._relay_answer(broker)

    async def _relay_answer(self, broker: Stream) -> None:
        """Send the broker's next response to the client, in pieces."""
        self._limit.wait_for(ConnectionState.ANSWERING)
        size = await _length_from(broker, 1 << 31)
        self._use_quota(0, size)
        self._stream.transport.write(LENGTH.pack(size))
        relay = Relay(broker, self._stream, size)
        while relay.left:
            piece = await _piece_from(relay)
            await self._write(piece)
            self._limit.wait_for(ConnectionState.ANSWERING)

    # -- quotas

    def _use_quota(self, requests: int, size: int) -> None:
        """Count requests and bytes; this request may end with a pause. Nodes have no quota."""
        if self._access.quotas is not None and self._session.principal and self._no_node:
            pause = self._access.quotas.use(self._session.principal, requests, size)
            self._pause = max(self._pause, pause)

    async def _keep_pause(self) -> None:
        """Read nothing more for the pause of this request (KIP-219)."""
        pause, self._pause = self._pause, 0.0
        if pause:
            self._limit.wait_for(ConnectionState.ANSWERING)
            await sleep(pause)

    async def _answer(self, head: Head, message: Any) -> None:
        """Write a response, which tells its client of the pause."""
        await self._write(
            write_response(head, with_throttle(message, self._pause) if self._pause else message)
        )

    async def _write(self, data: bytes) -> None:
        """Write, and wait while the client does not read (back-pressure)."""
        self._limit.wait_for(ConnectionState.WRITING, FRAME_SECONDS)
        await self._stream.write(data)


def _check_decoded(length: int, most: int = LONGEST_DECODED) -> None:
    if length > most:
        raise FrameRefused("too long to decode", f"{length} bytes")


async def _copy(client: Stream, broker: Stream, size: int) -> None:
    """Copy `size` bytes in pieces."""
    while size:
        piece = await client.read(min(size, PIECE))
        if not piece:
            raise asyncio.IncompleteReadError(piece, size)
        size -= len(piece)
        await broker.write(piece)


async def _length_from(broker: Stream, most: int) -> int:
    """Return the length of the broker's response."""
    try:
        (size,) = LENGTH.unpack(await broker.read_exactly(LENGTH.size))
    except asyncio.IncompleteReadError:
        raise BrokerUnavailable("it has closed the connection") from None
    except struct.error:
        raise BrokerUnavailable("it does not speak Kafka's protocol") from None
    if not LENGTH.size <= size < most:
        raise FrameRefused("answer of the broker", f"{size} bytes")
    return int(size)


async def _all_from(broker: Stream, size: int) -> bytes:
    try:
        return await broker.read_exactly(size)
    except asyncio.IncompleteReadError:
        raise BrokerUnavailable("it has closed the connection") from None


async def _piece_from(relay: Relay) -> bytes:
    try:
        return await relay.read()
    except EOFError:
        raise BrokerUnavailable("it has closed the connection in the middle of an answer") from None
