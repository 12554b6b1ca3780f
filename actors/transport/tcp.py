"""Secures Thespian's TCP transport: authenticated channels, bound to loopback.

Stock Thespian listens on every interface, and unpickles any bytes that it gets. Here

* every socket is a `Channel`: both ends prove that they have the cluster's key before any message,
  and only bytes that were authenticated for this connection are unpickled (see `channel`);
* every socket is bound to the loopback address that it advertises.

The key is in memory only: children inherit it by fork, not by environment or arguments. A process
connects to one cluster at a time. Importing this module patches Thespian's transport.
"""
# pyright: basic

import errno
import logging
import os
import pickle
import resource
import select
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

from thespian.system import transport
from thespian.system.timing import ExpirationTimer
from thespian.system.transport import (
    ReceiveEnvelope,
    SendStatus,
    TCPTransport,
    TransmitIntent,
    asyncTransportBase,
)
from thespian.system.transport.IPBase import TCPv4ActorAddress

from .channel import (
    FRAME_LIMIT,
    Channel,
    FrameTooLargeError,
    HostileFrameError,
    MessageBuffer,
)

STRANGER_SECONDS = 10.0  # time limit for a connection to authenticate
STRANGERS_LIMIT = 256  # maximum number of unauthenticated connections of a process
WARN_SECONDS = 10.0  # minimum interval of log lines about them
OUT_OF_DESCRIPTORS = errno.EMFILE, errno.ENFILE
SCARCE_SECONDS = 0.05  # retry interval of accept when the process is out of descriptors
SEND_SECONDS = 10  # time limit for the acknowledgement of a message

LOGGER = logging.getLogger(__name__)


_key = os.urandom(32)  # random until `arm` is called: no connection is accepted


def arm(host: str, key: bytes) -> None:
    """Set the address to bind, and the key of the cluster."""
    global _key  # noqa: PLW0603  (Thespian creates transports itself, without a way to pass it)
    _key = key
    LoopbackAddress.host = host


def accepted(plain: socket.socket) -> Channel:
    """Wrap an accepted connection in a channel, which authenticates the other end."""
    return Channel(plain, _key, accepted=True)


class LoopbackAddress(TCPv4ActorAddress):
    """An address that is bound exactly as it is advertised."""

    host = "127.0.0.1"

    def __init__(self, host: str | None = None, port: int = 0, external: object = None) -> None:
        del external  # the advertised address is the bound one
        super().__init__(host or self.host, int(port))


class Transport(TCPTransport.TCPTransport):
    """The transport whose sockets are all channels."""

    _silent_until = 0.0

    def serializer(self, intent: Any) -> bytes:
        """Return the body of a message about to be sent.

        Raises `FrameTooLargeError`, and what pickle raises for a message it cannot take.
        """
        body = pickle.dumps((self.myAddress, intent.message), 5)
        if len(body) > FRAME_LIMIT:
            raise FrameTooLargeError(
                f"a message of {len(body)} bytes exceeds the limit of {FRAME_LIMIT}: "
                "send it in parts, or write it down and send where it lies"
            )
        return body

    def new_socket(self, op: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Create or accept a socket, and wrap it in a channel."""
        try:
            plain = super().new_socket(op, *args, **options)
        except OSError as error:
            if error.errno in OUT_OF_DESCRIPTORS:
                # The loop would spin: the connection waits until it is accepted.
                time.sleep(SCARCE_SECONDS)
            raise
        if isinstance(plain, tuple):
            return accepted(plain[0]), plain[1]
        return Channel(plain, _key, accepted=False)

    def external_transport_clone(self) -> "Transport":
        """Return a new endpoint for this process."""
        return Transport(TCPTransport.ExternalTransportCopy(), self._adminAddr, self.txOnly, False)  # noqa: FBT003

    @property
    def is_silent(self) -> bool:
        """Whether no open connection has input: a message, or its end."""
        kernel = select.poll()
        for each in getattr(self, "_openSockets", {}).values():
            kernel.register(each.socket, select.POLLIN)
        return not kernel.poll(0)

    def close(self) -> None:
        """Close every socket; stock leaves them to the garbage collector."""
        holders = [
            *getattr(self, "_openSockets", {}).values(),
            *getattr(self, "_transmitIntents", {}).values(),
        ]
        sockets = [*(each.socket for each in holders), *filter(None, [getattr(self, "socket", 0)])]
        super().close()
        self._openSockets: dict[object, Any] = {}
        for each in sockets:
            each.close()

    def interrupt_wait(
        self, *, signal_shutdown: bool = False, check_children: bool = False
    ) -> None:
        """Wake the main loop, from any thread or signal handler.

        Without a free descriptor it is woken by its next timer.
        """
        self._shutdownSignalled |= signal_shutdown
        self._checkChildren |= check_children
        with suppress(OSError), socket.socket() as probe:
            # Closed with a reset: sockets in TIME_WAIT would use up the ports.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            probe.settimeout(0)
            probe.connect(*self.myAddress.addressDetails.connectArgs)

    def _acceptNewIncoming(self) -> None:
        before = set(self._incomingSockets)
        super()._acceptNewIncoming()
        for number in set(self._incomingSockets) - before:
            newcomer = self._incomingSockets[number]
            newcomer._expires = ExpirationTimer(timedelta(seconds=STRANGER_SECONDS))
        strangers = [
            number for number, each in self._incomingSockets.items() if not each.socket.trusted
        ]
        most = min(STRANGERS_LIMIT, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
        for number in strangers[: max(0, len(strangers) - most)]:
            self._incomingSockets.pop(number).close()

    def _handlePossibleIncoming(
        self,
        incoming: Any,
        number: int,
        closed: bool = False,  # noqa: FBT001, FBT002
        has_exclusive_flag: bool = False,  # noqa: FBT001, FBT002
    ) -> Any:
        late = not incoming.socket.trusted and incoming._expires.view().expired()
        return super()._handlePossibleIncoming(
            incoming, number, closed or late, has_exclusive_flag=has_exclusive_flag
        )

    def _handleReadableIncoming(self, incoming: Any, has_exclusive_flag: bool = False) -> Any:  # noqa: FBT001, FBT002
        try:
            body = incoming.socket.recv()
            if body:
                incoming.addData(body)
                return self._addedDataToIncoming(incoming, has_exclusive_flag=has_exclusive_flag)
        except BlockingIOError:
            return incoming
        except HostileFrameError as error:
            self._warn(error)
        except OSError:
            pass  # the other end has ended, or has only interrupted a wait
        incoming.close()  # without an answer
        return None

    def _warn(self, error: Exception) -> None:
        if time.monotonic() >= self._silent_until:  # or strangers could fill the disk
            self._silent_until = time.monotonic() + WARN_SECONDS
            LOGGER.warning("closed a connection: %s", error)

    def _next_XMIT_2(self, intent: Any) -> bool:
        """Send a message, or the hello on a new connection."""
        if not hasattr(intent, "socket"):
            return self._try_again(intent)
        channel = intent.socket
        try:
            if not channel.is_open:
                channel.greet()
                intent.stage = self._XMITStepWaitForAck
                return True
            if not intent.amtSent:
                intent.amtSent = len(intent.serMsg)
                channel.send(intent.serMsg)
            return bool(self._next_XMIT_3(intent)) if channel.flush() else True
        except (ConnectionRefusedError, BrokenPipeError):
            return self._dead(intent)
        except OSError:
            return self._try_again(intent)

    def _next_XMIT_4(self, intent: Any) -> bool:
        """Handle the greeting, the acknowledgement, or a message sent at the same time."""
        channel = intent.socket
        try:
            if not channel.is_open and channel.shake_hands():
                intent.stage = self._XMITStepSendData
                return self._next_XMIT_2(intent)
            body = channel.recv() if channel.is_open else b""
        except BlockingIOError:
            return True
        except HostileFrameError as error:
            self._warn(error)
            return self._dead(intent)
        except OSError:
            body = b""
        if body:
            return bool(self._check_XMIT_4_done(intent, body))
        intent.backoffPause(True)  # noqa: FBT003
        return self._try_again(intent)

    def _complete_expired_intents(self) -> tuple[int, bool]:
        """Fail the messages that waited too long; return how many wait, and whether any failed.

        All wait equally long, so those that came first are first. Stock looks at each of them, with
        each message: a thousand at once kept a process busy beyond its session.
        """
        late: list[Any] = []
        with self._aTB_lock:
            waiting = cast("deque[Any]", self._aTB_queuedPendingTransmits)
            while waiting and waiting[0].expired():
                late.append(waiting.popleft())
            left = len(waiting)
        for each in late:
            each.tx_done(SendStatus.Failed)
        return left, bool(late)

    def _dead(self, intent: Any) -> bool:
        dead: Any = SendStatus.DeadTarget
        return bool(self._finishIntent(intent, dead))

    def _try_again(self, intent: Any) -> bool:
        intent.stage = self._XMITStepRetry
        return bool(self._nextTransmitStep(intent))

    def _realizeWakeups(self) -> bool:
        self._check_indicators()  # stock does so only with a new connection; see interrupt_wait
        none_left = not self._activeWakeups
        found = super()._realizeWakeups()
        if none_left:
            self._activeWakeups.reverse()  # Thespian takes them from the end: first due, first out
        return bool(found)


def _identify(self: Any) -> str:
    return type(self.message).__name__


TCPTransport.ReceiveBuffer = MessageBuffer
# Stock opens an epoll descriptor in each turn of its loop: without a free one the process ends.
TCPTransport.selectors = SimpleNamespace(
    DefaultSelector=selectors.PollSelector,
    EVENT_READ=selectors.EVENT_READ,
    EVENT_WRITE=selectors.EVENT_WRITE,
)
TCPTransport.ackMsg, TCPTransport.ackDataErrMsg = (
    pickle.dumps(each, 5) for each in (TCPTransport.ackPacket, "ACK+DATAERR")
)
TCPTransport.TCPv4ActorAddress = LoopbackAddress
# Stock formats every message for a debug log that is off, and logs secrets in one that is on.
TransmitIntent.identify = _identify
ReceiveEnvelope.identify = _identify
# Twenty unanswered messages to hung peers would block all sends of an actor for minutes.
asyncTransportBase.MAX_PENDING_TRANSMITS = 200
transport.DEFAULT_MAX_TRANSMIT_PERIOD = timedelta(seconds=SEND_SECONDS)
