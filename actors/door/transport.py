"""Thespian's TCP base made safe: it takes Thespian's place inside Thespian.

Stock, every process listens on every interface and unpickles whatever it is sent. Here

* every socket is a `Channel`: both ends prove that they hold the cluster's key before a message
  passes, and nothing reaches pickle that was not made for this connection (see `channel`);
* every socket is bound to the loopback address that it tells others;
* a child dies with its parent, the admin with the process that started it, and none keeps a
  socket that it inherited;
* there is no logging process: actors write to the log file like any other Python program.

The key lives in memory only: children get it by fork, never by environment or arguments. A
process speaks to one cluster at a time.
"""
# pyright: basic

import ctypes
import errno
import logging
import multiprocessing
import os
import pickle
import resource
import selectors
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from setproctitle import setproctitle
from thespian.actors import ActorSystemFailure, ActorSystemMessage, PoisonMessage
from thespian.system import multiprocCommon, transport, utilis
from thespian.system.addressManager import ActorLocalAddress
from thespian.system.messages.multiproc import EndpointConnected
from thespian.system.systemBase import BaseContext, ExternalOpsToActors, systemBase
from thespian.system.timing import ExpirationTimer
from thespian.system.transport import (
    ExternalInterfaceTransportInit,
    ReceiveEnvelope,
    SendStatus,
    TCPTransport,
    TransmitIntent,
    asyncTransportBase,
)
from thespian.system.transport.IPBase import TCPv4ActorAddress

from .channel import FRAME_LIMIT, Channel, FrameTooLargeError, HostileFrameError
from .log_file import LogFile, open_private

FORK = multiprocessing.get_context("fork")
STRANGER_SECONDS = 10.0  # how long a connection may take to prove that it holds the key
STRANGERS_LIMIT = 256  # connections of one process that have not proved it yet
COMPLAINT_SECONDS = 10.0  # between log lines about strangers
OUT_OF_DESCRIPTORS = errno.EMFILE, errno.ENFILE
SCARCE_SECONDS = 0.05  # between attempts to accept a connection without a descriptor for it
SEND_SECONDS = 10  # after which a message without acknowledgement is given up

_PR_SET_PDEATHSIG = 1
_PLAIN_LOGGING = logging.root, logging.Logger.manager

LOGGER = logging.getLogger(__name__)


_key = os.urandom(32)  # until `arm` is called nobody is believed
_log_file: Path | None = None
_log_level = "INFO"
_system_name = ""
_node = ""


def arm(host: str, key: bytes) -> None:
    """Speak from now on from `host`, and only with those who hold `key`."""
    global _key  # noqa: PLW0603  (Thespian's transport knows no instance to keep it in)
    _key = key
    LoopbackAddress.host = host


class MessageBuffer:
    """One message as it comes out of a channel: in one piece, after its MAC has been checked."""

    def __init__(self, _loads: Callable[[bytes], object] | None = None) -> None:
        self._body: bytes | memoryview = b""
        self._message: tuple[object] | None = None

    def addMore(self, body: bytes | memoryview) -> None:
        """Take what a channel has received."""
        self._body = body or self._body

    def remainingAmount(self) -> int:
        """Return how many bytes to ask for; a channel knows better."""
        return 0

    def isDone(self) -> bool:
        """Return whether the message is here."""
        return len(self._body) > 0

    def completed(self) -> tuple[object, bytes] | None:
        """Return the message, and that nothing came after it, once it is here."""
        if not self.isDone():
            return None
        if self._message is None:
            self._message = (pickle.loads(self._body),)  # noqa: S301
        return self._message[0], b""

    def removeExtra(self) -> None:
        """Do nothing: nothing ever comes after the message."""


class LoopbackAddress(TCPv4ActorAddress):
    """An address that is bound as it is told to others."""

    host = "127.0.0.1"

    def __init__(self, host: str | None = None, port: int = 0, external: object = None) -> None:
        del external  # what others can reach is what is bound
        super().__init__(host or self.host, int(port))


class Transport(TCPTransport.TCPTransport):
    """Sockets that speak over channels only."""

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
        """Make or accept a socket, and return it as a channel."""
        try:
            made = super().new_socket(op, *args, **options)
        except OSError as error:
            if error.errno in OUT_OF_DESCRIPTORS:
                # A connection that waits to be accepted would have the loop spin.
                time.sleep(SCARCE_SECONDS)
            raise
        if isinstance(made, tuple):
            return Channel(made[0], _key, accepted=True), made[1]
        return Channel(made, _key, accepted=False)

    def external_transport_clone(self) -> "Transport":
        """Return one more endpoint for this process."""
        return Transport(TCPTransport.ExternalTransportCopy(), self._adminAddr, self.txOnly, False)  # noqa: FBT003

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
        """Wake the main loop, from any thread or signal handler."""
        self._shutdownSignalled |= signal_shutdown
        self._checkChildren |= check_children
        with socket.socket() as knock:
            # Closed with a reset: a wait state per knock would use up the ports.
            knock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            knock.settimeout(0)
            with suppress(OSError):
                knock.connect(*self.myAddress.addressDetails.connectArgs)

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
            self._complain(error)
        except OSError:
            pass  # the other end died, or was only knocking
        incoming.close()  # without an answer
        return None

    def _complain(self, error: Exception) -> None:
        if time.monotonic() >= self._silent_until:  # or strangers could fill the disk
            self._silent_until = time.monotonic() + COMPLAINT_SECONDS
            LOGGER.warning("closed a connection: %s", error)

    def _next_XMIT_2(self, intent: Any) -> bool:
        """Send a message, or hello over a connection that is new."""
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
        """Take the greeting, the acknowledgement, or a message sent at the same time."""
        channel = intent.socket
        try:
            if not channel.is_open and channel.shake_hands():
                intent.stage = self._XMITStepSendData
                return self._next_XMIT_2(intent)
            body = channel.recv() if channel.is_open else b""
        except BlockingIOError:
            return True
        except HostileFrameError as error:
            self._complain(error)
            return self._dead(intent)
        except OSError:
            body = b""
        if body:
            return bool(self._check_XMIT_4_done(intent, body))
        intent.backoffPause(True)  # noqa: FBT003
        return self._try_again(intent)

    def _dead(self, intent: Any) -> bool:
        dead: Any = SendStatus.DeadTarget
        return bool(self._finishIntent(intent, dead))

    def _try_again(self, intent: Any) -> bool:
        intent.stage = self._XMITStepRetry
        return bool(self._nextTransmitStep(intent))

    def _realizeWakeups(self) -> bool:
        none_left = not self._activeWakeups
        found = super()._realizeWakeups()
        if none_left:
            self._activeWakeups.reverse()  # they are taken from the end: first due, first out
        return bool(found)


class WhoIs(ActorSystemMessage):
    """Asks the admin for the address of a named actor; answered by a `Named`."""

    def __init__(self, name: str) -> None:
        self.name = name


class Named:
    """The address of a named actor, or None; `node` says whose admin it is that answers."""

    def __init__(self, address: Any, node: str = "") -> None:
        self.address = address
        self.node = node


class Admin(multiprocCommon.MultiProcAdmin):
    """The root of a system: a plain child of the process that started it."""

    def _childExited(self, childAddr: Any) -> None:
        """Report every child: stock drops others that are dead by now; see `childDied`."""

    def h_WhoIs(self, envelope: Any) -> bool:
        """Look a name up without creating anything."""
        named = Named(self._globalNames.get(envelope.message.name), _node)
        self._send_intent(TransmitIntent(envelope.sender, named))
        return True

    def _cleanupAdmin(self, finish_cleanup: Callable[[], None]) -> None:
        finish_cleanup()  # no logger to stop


class Manager(multiprocCommon.MultiProcManager):
    """What stands between one actor and its process."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._unborn: set[int] = set()
        _log_to_file()
        super().__init__(*args, **options)

    def _childExited(self, childAddr: Any) -> None:
        """Report every child: stock drops others that are dead by now; see `childDied`."""

    def run(self) -> None:
        """Run the actor, then end its process whatever threads it has left behind."""
        kind = str(self._actorClass).rpartition(".")[-1].removesuffix("Actor") or "Actor"
        _set_title(kind, (self._childReqs or {}).get("name") or "")
        code = 0
        try:
            super().run()
        except SystemExit as wish:
            code = wish.code if isinstance(wish.code, int) else 1
        except BaseException:
            LOGGER.exception("%s broke down", kind)
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def post(self, message: object) -> None:
        """Put a message into the actor's own mailbox, from any thread."""
        self.transport._incomingEnvelopes.append(ReceiveEnvelope(self.myAddress, message))
        self.transport.interrupt_wait()

    def pid_of(self, address: Any) -> int | None:
        """Return the process id of a child, None if it has ended."""
        for each in getattr(self, "_child_procs", []):
            if address in (each.childAddr, getattr(each, "childRealAddr", None)):
                pid: int | None = each.childProc.pid
                return pid
        return None

    def actor_send_fail(self, result: Any, intent: Any) -> None:
        """Tell the sender, which stock does only for what it never tried to send."""
        if any(
            isinstance(each.message, PoisonMessage) and each.message.poisonMessage is intent.message
            for each in self._receiveQueue
        ):
            return
        why = "no one is there" if result == SendStatus.DeadTarget else "not acknowledged"
        self.transport._incomingEnvelopes.append(
            ReceiveEnvelope(intent.targetAddr, PoisonMessage(intent.message, why))
        )

    def childDied(self) -> bool:
        """Notice the exit of children, also of those that never got as far as to report."""
        unborn = [
            each.childAddr.addressDetails.addressInstanceNum
            for each in getattr(self, "_child_procs", [])
            if not hasattr(each, "childRealAddr") and not each.childProc.is_alive()
        ]
        self._unborn.update(unborn)
        for instance in unborn:
            self._retryPendingChildOperations(instance, None)
        return bool(super().childDied())

    def _send_intent_to_transport(self, intent: Any) -> None:
        """Return what is for a child that ended without an address: stock waits for one."""
        target = intent.targetAddr.addressDetails
        if isinstance(target, ActorLocalAddress) and target.addressInstanceNum in self._unborn:
            intent.tx_done(SendStatus.DeadTarget)
        else:
            super()._send_intent_to_transport(intent)


class ExternalEndpoint(BaseContext):
    """One endpoint of a process that is no actor."""

    def begin(self, to: Any, message: object) -> Any:
        """Begin to send a message, and return what knows whether that failed."""
        return self._tx_to_actor(to, message)

    def tell(self, to: Any, message: object) -> None:
        """Send a message and wait for its arrival; stock returns whether it arrives or not."""
        sent = self._tx_to_actor(to, message)
        patience = timedelta(seconds=SEND_SECONDS + 1)
        while not sent.failed and self._run_transport(patience, txonly=True):
            pass  # it returns whenever one of several messages is through
        if sent.failed:
            raise ActorSystemFailure(f"{type(message).__name__} was not delivered to {to}")


class ExternalSystem(systemBase):
    """A system seen from a process that is no actor; stock starts one where it finds none."""

    def __init__(self, port: int) -> None:
        self.capabilities = {"Admin Port": port, "Process Startup Method": "fork"}
        self.transport = Transport(ExternalInterfaceTransportInit(), self.capabilities, None, FORK)
        ExternalOpsToActors.__init__(self, Transport.getAdminAddr(self.capabilities))

    def external_clone(self) -> ExternalEndpoint:
        """Return one more endpoint."""
        return ExternalEndpoint(self.adminAddr, self.transport)

    def port_is_taken(self) -> bool:
        """Return whether the admin's port is in use."""
        return bool(self.transport.probeAdmin(self.adminAddr))

    def start_admin(self, seconds: float) -> Any:
        """Fork the admin and return its process, or None if it does not report in time."""
        starter, address = self.transport.myAddress, self.adminAddr
        endpoint = self.transport.prepEndpoint(address, self.capabilities)
        admin = FORK.Process(
            target=run_admin, args=(starter, endpoint, address, self.capabilities), daemon=True
        )
        admin.start()
        deadline = time.monotonic() + seconds
        while admin.is_alive() and time.monotonic() < deadline:
            heard = self.transport.run(None, timedelta(seconds=0.1))
            if isinstance(heard, ReceiveEnvelope) and isinstance(heard.message, EndpointConnected):
                return admin
        admin.kill()
        return None


def run_admin(starter: Any, endpoint: Any, address: Any, capabilities: dict[str, object]) -> None:
    """Run the admin in the process just forked, until the system is shut down."""
    _leave_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the key is in memory
    os.setsid()  # Ctrl-C is for the process that started the system
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # what handles them there means nothing here
    _log_to_file()
    _set_title("admin", _system_name)
    admin = Admin(Transport(endpoint), address, capabilities, None, FORK)
    admin.asLogger = admin.transport.myAddress  # nobody writes to it, but there must be one
    signal.signal(signal.SIGCHLD, admin.signalChildDied)
    admin.transport.scheduleTransmit(None, TransmitIntent(starter, EndpointConnected(0)))
    admin._activate()
    admin.transport.enableRXPauseFlowControl(False)  # noqa: FBT003
    admin.run()


def name_system(name: str, log_file: Path | None, node: str = "", log_level: str = "INFO") -> None:
    """Say what the processes forked from here are called, where they log, and whose they are.

    What they log is of this level or above. Without a log file nothing is written.
    """
    global _log_file, _log_level, _system_name, _node
    _log_file, _log_level, _system_name, _node = log_file, log_level, name, node
    if log_file is None:
        utilis._thesplog_control_settings = (logging.CRITICAL + 1, False, 0)
        return
    utilis._thesplog_control_settings = (logging.WARNING, False, 1 << 20)
    utilis._thesplog_file = str(log_file.with_name("thespian.log"))
    utilis._thesplog_old_file = f"{utilis._thesplog_file}.old"


def _start_actor(*args: Any) -> None:
    _leave_parent()
    _stock_start_child(*args)


def _leave_parent() -> None:
    """Die with the parent process, and keep none of its sockets."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:
        os._exit(1)  # it was faster
    for number in sorted(int(each) for each in os.listdir("/proc/self/fd")):  # noqa: PTH208
        with suppress(OSError):
            if number > 2 and stat.S_ISSOCK(os.fstat(number).st_mode):  # noqa: PLR2004
                os.close(number)


def _log_to_file() -> None:
    # Thespian has put its own root in place, which sends every record as a message.
    logging.root, logging.Logger.manager = _PLAIN_LOGGING
    logging.Logger.root = logging.root
    logging.raiseExceptions = False  # a full disk is no reason to write to the terminal
    handler = LogFile(_log_file, delay=True) if _log_file else logging.NullHandler()
    handler.setFormatter(
        logging.Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s")
    )
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(_log_level)


def _set_title(kind: str, name: str) -> None:
    setproctitle(f"fairlead: {kind.lower()} {name}".rstrip())


def _identify(self: Any) -> str:
    return type(self.message).__name__


# Its own log, the only file that it opens.
utilis.open = open_private  # pyright: ignore[reportAttributeAccessIssue]
_stock_start_child = multiprocCommon.startChild
multiprocCommon.startChild = _start_actor
multiprocCommon.MultiProcManager = Manager
TCPTransport.ReceiveBuffer = MessageBuffer
# Stock makes an epoll descriptor for each turn of its loop: a process that has none left would end.
TCPTransport.selectors = SimpleNamespace(
    DefaultSelector=selectors.PollSelector,
    EVENT_READ=selectors.EVENT_READ,
    EVENT_WRITE=selectors.EVENT_WRITE,
)
TCPTransport.ackMsg, TCPTransport.ackDataErrMsg = (
    pickle.dumps(each, 5) for each in (TCPTransport.ackPacket, "ACK+DATAERR")
)
TCPTransport.TCPv4ActorAddress = LoopbackAddress
# Stock writes out every message for a debug log that is off, and secrets into one that is on.
TransmitIntent.identify = _identify
ReceiveEnvelope.identify = _identify
# Twenty unanswered messages to hung peers would block all that an actor sends, for minutes.
asyncTransportBase.MAX_PENDING_TRANSMITS = 200
transport.DEFAULT_MAX_TRANSMIT_PERIOD = timedelta(seconds=SEND_SECONDS)
name_system("", None)
