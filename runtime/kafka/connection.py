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

from ...actors.messages.groups import HostCall
from ...actors.transport.ports import HostPort
from .broker.responses import (
    MapBroker,
    find_group_coordinator,
    is_for_groups,
    rewrite_response,
)
from .broker.upstream import BrokerUnavailable, Upstream
from .client.reply_handler import OnHold
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
from .synchronous import LastRequest, SynchronousHeartbeats
from .wire.bounds import (
    FRAME_SECONDS,
    IDLE_SECONDS,
    LONGEST_DECODED,
    LONGEST_FRAME,
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
from .wire.dispatch import answer_of
from .wire.frames import (
    HEAD,
    LENGTH,
    Head,
    is_known,
    read_head,
    read_request,
    read_response,
    write_response,
)
from .wire.lengths import expects_answer
from .wire.served import (
    CONNECT_HEARTBEAT,
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    HEARTBEAT,
    OF_EVERYBODY,
    PRODUCE,
    REWRITTEN,
    SASL,
    SERVED,
    is_served,
)

LOGGER = logging.getLogger(__name__)
MTLS: Final = "mtls"
"""How clients prove who they are by their certificates, in the label of a metric."""
FIRST_BYTES: Final = 4_096
"""The size of the first part of a Produce, in bytes: `acks` is in it, after the ids."""
HEARTBEATS: Final = frozenset({HEARTBEAT, CONSUMER_GROUP_HEARTBEAT, CONNECT_HEARTBEAT})
"""The APIs whose requests a group may hold (long poll)."""


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
        except (ssl.SSLError, OSError, TimeoutError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise FrameRefused(TLS, str(reason)) from None
        if self._access.authenticator is None:
            self._session.principal = self._access.name_by_certificate(self._stream.certificate)
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
        _check_decoded(length)
        frame, received = await self._receiver.read(first, length)
        try:
            await self._budget.take(length)
        finally:
            received.give_back()
        share = BudgetShare(self._budget, length)
        try:
            parsed = self._last.read(head, frame, f"/{self.address}", self._add_rights)
            del frame
            # The workers' group leaves some requests unanswered: the client times out before this.
            seconds = IDLE_SECONDS if head.api == CONNECT_HEARTBEAT else 0.0
            self._limit.wait_for(ConnectionState.ANSWERING, seconds)
            on_hold = partial(self._hold, share, head.api)
            replies = await self._ask(head.api, parsed.calls, on_hold)
        finally:
            share.give_back()
        await self._answer(head, answer_of(parsed.request, replies))

    async def _ask(self, api: int, calls: Sequence[Any], on_hold: OnHold) -> Sequence[Any]:
        """Return the replies to the calls of a request, as far as the client has the rights."""

        async def ask(permitted: Sequence[Any]) -> Sequence[Any]:
            return await self._groups.ask(permitted, on_hold, lists=self._shared.lists)

        if (rights := self._find_rights()) is None:
            return await ask(calls)
        replies, missing = await ask_with_rights(rights, calls, ask)
        if missing:
            self._last.forget()
            self._counts.count_denial(api, self._session.principal, missing)
        return replies

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
                here = self._shared.here
                response = find_group_coordinator(request, here, self._may_find)
                await self._write(write_response(head, response))
                return
        broker = await self._upstream.open()
        self._limit.wait_for(ConnectionState.ANSWERING)
        await broker.write(LENGTH.pack(length) + frame)
        size = await _length_from(broker, LONGEST_REWRITTEN)
        message = read_response(head, await _all_from(broker, size))
        here, map_broker = self._shared.here, self._shared.map_broker
        hidden = self._groups.hidden_apis
        rewritten = rewrite_response(head.api, message, here, map_broker, hidden)
        await self._answer(head, rewritten)

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
        broker = await self._upstream.open()
        left, is_answered = length - len(first), True
        if head.api == PRODUCE:
            more = await self._stream.read_exactly(min(left, FIRST_BYTES))
            first, left = first + more, left - len(more)
            is_answered = expects_answer(head.version, first)
        await broker.write(LENGTH.pack(length) + first)
        await _copy(self._stream, broker, left)
        self._limit.wait_for(ConnectionState.ANSWERING)
        if is_answered:
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
        """Count requests and bytes; this request may end with a pause."""
        if self._access.quotas is not None and self._session.principal:
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


def _check_decoded(length: int) -> None:
    if length > LONGEST_DECODED:
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
