"""The processes of an actor system: the admin, the actors below it, and external clients.

Importing this module patches Thespian's process base:

* A child ends with its parent, the admin with the process that started it, and none keeps
  inherited sockets.
* The exit of a child is always reported, and so is a message that was given up.
* There is no logging process: actors write to the log file like other Python programs.
"""
# pyright: basic

import gc
import logging
import multiprocessing
import os
import resource
import signal
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from setproctitle import setproctitle
from thespian.actors import ActorSystemFailure, ActorSystemMessage, PoisonMessage
from thespian.system import multiprocCommon, utilis
from thespian.system.addressManager import ActorLocalAddress
from thespian.system.messages.multiproc import EndpointConnected
from thespian.system.systemBase import BaseContext, ExternalOpsToActors, systemBase
from thespian.system.transport import (
    ExternalInterfaceTransportInit,
    ReceiveEnvelope,
    SendStatus,
    TransmitIntent,
)

from ..tether import die_with
from . import log_levels
from .crashes import end_at_crashes, open_traces
from .log_file import open_private
from .log_format import LogOutput
from .tcp import SEND_SECONDS, Transport

FORK = multiprocessing.get_context("fork")

_PLAIN_LOGGING = logging.root, logging.Logger.manager

LOGGER = logging.getLogger(__name__)

_STACK_SLOTS = 20_000
"""The size of one frame, in values of 8 bytes, which are never touched.

CPython 3.11 and later keep frames in chunks of 16 KiB, and return one as soon as its last frame
ends. A loop that happens to run near the end of a chunk maps the next one for each deeper call, and
returns it: the heartbeat of a group cost five times as much after a few functions had come above
its loop. A chunk is as large as its first frame asks: 256 KiB here, of which a third is left.
"""

_log_file: Path | None = None
PLAIN = LogOutput()
_output = PLAIN
_system_name = ""
_node = ""


def call_with_room(function: Callable[[], None]) -> None:
    """Call a function with room for the frames of all calls within it, in one piece of memory."""
    function()


call_with_room.__code__ = call_with_room.__code__.replace(co_stacksize=_STACK_SLOTS)


class WhoIs(ActorSystemMessage):
    """To the admin: look up a named actor; the reply is a `Named`."""

    def __init__(self, name: str) -> None:
        self.name = name


class Named:
    """From the admin: the address of a named actor, or None; `node` is the admin's node."""

    def __init__(self, address: Any, node: str = "") -> None:
        self.address = address
        self.node = node


class Admin(multiprocCommon.MultiProcAdmin):
    """The root of a system: a plain child of the process that started it."""

    def _childExited(self, childAddr: Any) -> None:
        """Report every child: stock drops others that are dead by now; see `childDied`."""

    def h_WhoIs(self, envelope: Any) -> bool:
        """Look up a name without creating an actor."""
        named = Named(self._globalNames.get(envelope.message.name), _node)
        self._send_intent(TransmitIntent(envelope.sender, named))
        return True

    def _cleanupAdmin(self, finish_cleanup: Callable[[], None]) -> None:
        finish_cleanup()  # no logger to stop


class ActorManager(multiprocCommon.MultiProcManager):
    """The manager of one actor in its process."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._failed_starts: set[int] = set()
        """The address numbers of children that ended before they reported their addresses."""
        _log_to_file()
        super().__init__(*args, **options)

    def _childExited(self, childAddr: Any) -> None:
        """Report every child: stock drops others that are dead by now; see `childDied`."""

    def run(self) -> None:
        """Run the actor, then end its process even if other threads still run."""
        end_at_crashes(open_traces(_log_file.parent) if _log_file else None)
        requested = self._childReqs or {}
        of_class = str(self._actorClass).rpartition(".")[-1].removesuffix("Actor")
        kind = requested.get("title") or of_class or "Actor"
        _set_title(kind, requested.get("name") or "")
        code = 0
        try:
            call_with_room(super().run)
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 1
        except BaseException:
            LOGGER.exception("%s broke down", kind)
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    def put(self, message: object) -> None:
        """Put a message into the actor's mailbox, from any thread; it does not wake the actor."""
        self.transport._incomingEnvelopes.append(ReceiveEnvelope(self.myAddress, message))

    def pid_of(self, address: Any) -> int | None:
        """Return the process id of a child, None if it has ended."""
        for each in getattr(self, "_child_procs", []):
            if address in (each.childAddr, getattr(each, "childRealAddr", None)):
                pid: int | None = each.childProc.pid
                return pid
        return None

    def actor_send_fail(self, result: Any, intent: Any) -> None:
        """Report a message that was given up; stock does so only if it never tried to send it."""
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
        """Detect the exit of children, including those that never reported their address."""
        failed = [
            each.childAddr.addressDetails.addressInstanceNum
            for each in getattr(self, "_child_procs", [])
            if not hasattr(each, "childRealAddr") and not each.childProc.is_alive()
        ]
        self._failed_starts.update(failed)
        for instance in failed:
            self._retryPendingChildOperations(instance, None)
        return bool(super().childDied())

    def _send_intent_to_transport(self, intent: Any) -> None:
        """Return messages to a child that ended without an address: stock waits for one."""
        target = intent.targetAddr.addressDetails
        if (
            isinstance(target, ActorLocalAddress)
            and target.addressInstanceNum in self._failed_starts
        ):
            intent.tx_done(SendStatus.DeadTarget)
        else:
            super()._send_intent_to_transport(intent)


class ExternalEndpoint(BaseContext):
    """An endpoint of a process that is not an actor."""

    def begin(self, to: Any, message: object) -> Any:
        """Start to send a message, and return its intent, which has the result."""
        return self._tx_to_actor(to, message)

    def tell(self, to: Any, message: object) -> None:
        """Send a message and wait for its delivery; stock returns in any case."""
        sent = self._tx_to_actor(to, message)
        patience = timedelta(seconds=SEND_SECONDS + 1)
        while not sent.failed and self._run_transport(patience, txonly=True):
            pass  # it returns whenever one of several messages is through
        if sent.failed:
            raise ActorSystemFailure(f"{type(message).__name__} was not delivered to {to}")


class ExternalSystem(systemBase):
    """A system as seen by a process that is not an actor; stock would start a missing system."""

    def __init__(self, port: int) -> None:
        self.capabilities = {"Admin Port": port, "Process Startup Method": "fork"}
        self.transport = Transport(ExternalInterfaceTransportInit(), self.capabilities, None, FORK)
        ExternalOpsToActors.__init__(self, Transport.getAdminAddr(self.capabilities))

    def external_clone(self) -> ExternalEndpoint:
        """Return a new endpoint."""
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
        gc.collect()
        gc.freeze()  # objects that the actors' collectors skip stay in shared memory
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
        signal.signal(number, signal.SIG_DFL)  # the parent's handlers must not run here
    _log_to_file()
    _set_title("admin", _system_name)
    admin = Admin(Transport(endpoint), address, capabilities, None, FORK)
    admin.asLogger = admin.transport.myAddress  # unused, but Thespian requires one
    signal.signal(signal.SIGCHLD, admin.signalChildDied)
    admin.transport.scheduleTransmit(None, TransmitIntent(starter, EndpointConnected(0)))
    admin._activate()
    admin.transport.enableRXPauseFlowControl(False)  # noqa: FBT003
    admin.run()


def name_system(
    name: str, log_file: Path | None, node: str = "", output: LogOutput = PLAIN
) -> None:
    """Set the title, the log and the node of the processes that are forked from here.

    Without a log file nothing is written.
    """
    global _log_file, _output, _system_name, _node
    _log_file, _output, _system_name, _node = log_file, output, name, node
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
    parent = multiprocessing.parent_process()
    die_with(os.getppid() if parent is None or parent.pid is None else parent.pid)
    for number in sorted(int(each) for each in os.listdir("/proc/self/fd")):  # noqa: PTH208
        with suppress(OSError):
            if number > 2 and stat.S_ISSOCK(os.fstat(number).st_mode):  # noqa: PLR2004
                os.close(number)


def _log_to_file() -> None:
    # Thespian has installed its own root logger, which sends every record as a message.
    logging.root, logging.Logger.manager = _PLAIN_LOGGING
    logging.Logger.root = logging.root
    logging.raiseExceptions = False  # with a full disk, errors must not go to the terminal
    handler = logging.NullHandler() if _log_file is None else _output.handler(_log_file, delay=True)
    logging.root.handlers[:] = [handler]
    logging.root.setLevel(_output.level)
    read_log_levels()


def read_log_levels() -> None:
    """Apply the log levels that were set while the system runs."""
    if _log_file is not None:
        log_levels.apply(_log_file.parent)


def _set_title(kind: str, name: str) -> None:
    setproctitle(f"fairlead: {kind.lower()} {name}".rstrip())


# Thespian's own log, the only file that it opens.
utilis.open = open_private  # pyright: ignore[reportAttributeAccessIssue]
_stock_start_child = multiprocCommon.startChild
multiprocCommon.startChild = _start_actor
multiprocCommon.MultiProcManager = ActorManager
name_system("", None)
