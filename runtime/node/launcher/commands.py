"""The commands `up`, `down` and `worker`: run, stop or extend the node of a data folder."""

import os
import resource
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import Final

from ....actors.timing import Backoff
from ....actors.transport.actor import Address
from ....actors.transport.ports import LOOPBACK, PortTakenError, check_free, free_port
from ....actors.transport.system import System, UnreachableError, connect
from ....events.log.process import ProcessId, is_alive, kill
from ...cluster.messages import (
    SUPERVISOR,
    AddWorker,
    DescribeNode,
    NodeView,
    ProcessView,
    StopWorker,
    WorkerAdded,
)
from ...cluster.run_folder import (
    KeyRefusedError,
    NodeRunsError,
    NoNodeError,
    RunFolder,
    folder_mode_warnings,
)
from ...cluster.spec import AssignorSpec, EngineSpec, NodeSpec, WorkerTraits
from ...config.load import Config
from ..process_files import ProcessFiles
from .actor_system import NodeFailedError
from .kafka_process import kafka_spec
from .launcher import Launcher
from .rest_process import rest_command

OK, FAILED, UNREACHABLE = 0, 1, 3
DOWN_SECONDS = 60.0
WATCH_SECONDS = 0.5
ANSWER_SECONDS = 10.0


def node_spec(config: Config, rest_port: int) -> NodeSpec:
    """Build the specification of a node from its configuration."""
    return NodeSpec(
        data_dir=config.data_path,
        group_id=config.group_id,
        place=config.place(rest_port),
        workers=tuple(f"w{number + 1}" for number in range(config.workers)),
        settings=config.settings(),
        timing=config.timing(),
        engine=EngineSpec(
            config.engine,
            config.cores(),
            config.spark_heap,
            dict(config.spark_conf),
            config.task_shutdown_graceful_timeout_ms,
            config.batches(),
            config.is_shared,
            config.cluster,
            config.worker_memory(),
        ),
        backoff_ms=Backoff(config.worker_restart_backoff_ms, config.worker_restart_backoff_max_ms),
        answer_timeout_ms=config.process_answer_timeout_ms,
        server_assignor=config.group_remote_assignor or None,
        instance=config.group_instance_id,
        traits=WorkerTraits(config.client_rack or None, config.abilities(), config.classic_mode()),
        assignors=AssignorSpec(
            config.assignor_names(), config.assignor_settings(), config.assignor_memory()
        ),
        reach=config.reach(),
        log=config.log_output(),
        kafka=kafka_spec(config),
    )


def up(config: Config, *, new_key: bool = False) -> int:
    """Run this node in the foreground until a signal ends it; return the exit code.

    With `new_key` a missing cluster key is replaced, even if there are logs.
    """
    folder = RunFolder(config.data_path)
    try:
        raise_open_files(for_spark=config.engine == "spark")
        folder.claim()
    except (NodeRunsError, TooFewOpenFilesError, OSError) as error:
        _say(f"not started: {error}")
        return FAILED
    try:
        config.log_output().begin(config.data_path / "logs" / "up.log", is_terminal=True)
        ProcessFiles(folder.path).end_all()
        _check_ports(config)
        folder.key(may_replace=new_key)
        for warning in folder_mode_warnings(config.data_path):
            _say(warning)
        return _run(config, folder)
    except (KeyRefusedError, PortTakenError) as error:
        _say(f"not started: {error}")
        return FAILED
    finally:
        folder.release()


def _check_ports(config: Config) -> None:
    """Raise `PortTakenError` if a port of the node is in use."""
    kafka = kafka_spec(config)
    for key, (host, port) in (
        ("listeners", config.listener),
        ("actor.port", (LOOPBACK, config.actor_port)),
        ("kafka.listeners", (kafka.host, kafka.port) if kafka else (LOOPBACK, 0)),
    ):
        if port:
            try:
                check_free(host, port)
            except PortTakenError as error:
                raise PortTakenError(
                    f"{error}; end that program, or choose another port with {key}"
                ) from None


def _run(config: Config, folder: RunFolder) -> int:
    listener = config.listener
    port = listener.port or free_port()
    url = f"http://{listener.host}:{port}"
    rest = rest_command(config, url)
    launcher = Launcher(node_spec(config, port), folder, config.actor_port, rest)
    try:
        if launcher.start(url):
            workers = f"{config.workers} worker{'' if config.workers == 1 else 's'}"
            _say(
                f"group {config.group_id} is up with {workers}; REST on {url}, "
                f"data in {config.data_path}; Ctrl-C ends it"
            )
        number = launcher.watch()
    except NodeFailedError as error:
        _say(f"the node ends: {error}")
        return FAILED
    except KeyboardInterrupt:
        number = signal.SIGINT
    finally:
        launcher.stop()
    _say(f"the node is down ({signal.Signals(number).name})")
    return OK


def down(config: Config) -> int:
    """Shut down the node of this data folder gracefully; return the exit code."""
    folder = RunFolder(config.data_path)
    try:
        node = folder.node()
    except NoNodeError as error:
        return _end_remains(folder, str(error))
    was_graceful = _end_node(node.process)
    left = ProcessFiles(folder.path).end_all()
    if not was_graceful:
        _say(f"the node (pid {node.pid}) did not end within {DOWN_SECONDS:.0f} s, and was killed")
    if left:
        _say(f"ended as well: {', '.join(map(str, left))}")
    _say("the node is down")
    return OK


def _end_node(process: ProcessId) -> bool:
    """Send SIGTERM to the launcher, and wait; return False if it had to be killed.

    SIGCONT follows, since a suspended process would not handle SIGTERM.
    """
    for number in (signal.SIGTERM, signal.SIGCONT):
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)
    deadline = time.monotonic() + DOWN_SECONDS
    while is_alive(process):
        if time.monotonic() > deadline:
            kill(process)
            return False
        time.sleep(0.05)
    return True


def _end_remains(folder: RunFolder, why: str) -> int:
    """Kill the processes of a node whose launcher is gone; return the exit code."""
    files = ProcessFiles(folder.path)
    if not any(each.is_alive for each in files.read()):
        _say(why)
        return UNREACHABLE
    try:
        folder.claim()
    except NodeRunsError:
        _say(f"a node is just starting on {folder.path.parent}: try again")
        return FAILED
    try:
        left = files.end_all()
    finally:
        folder.release()
    _say(f"the node's first process was gone; killed the others: {', '.join(map(str, left))}")
    return OK


def run_worker(config: Config, wanted: AddWorker) -> int:
    """Run one more worker until it or this process ends; return the exit code."""
    signals = _Signals()  # first: libraries might swallow a KeyboardInterrupt
    try:
        system = connect(RunFolder(config.data_path).system_address())
    except (NoNodeError, KeyRefusedError, UnreachableError) as error:
        _say(str(error))
        return UNREACHABLE
    try:
        return OK if signals.received else _accompany(system, wanted, signals)
    except UnreachableError as error:
        _say(f"the node is gone, and the worker with it: {error}")
        return UNREACHABLE
    finally:
        system.close()


class _Signals:
    """Handles SIGINT, SIGTERM and SIGHUP: `received` says whether one has come."""

    def __init__(self) -> None:
        self.received = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, _: int, __: FrameType | None) -> None:
        self.received = True


def _accompany(system: System, wanted: AddWorker, signals: _Signals) -> int:
    """Run a worker below the supervisor; return the exit code once it has ended.

    A signal to this process shuts the worker down gracefully.
    """
    supervisor = _find_supervisor(system)
    added = system.ask(supervisor, wanted, ANSWER_SECONDS)
    if not isinstance(added, WorkerAdded):
        raise UnreachableError("the supervisor does not answer")
    if added.error:
        _say(added.error)
        return FAILED
    _say(f"worker {added.name} runs; Ctrl-C lets it leave")
    while (worker := _find_worker(system, supervisor, added.name)) is not None:
        if signals.received and worker.state != "leaving":
            system.ask(supervisor, StopWorker(added.name), ANSWER_SECONDS)
        time.sleep(WATCH_SECONDS)
    _say(f"worker {added.name} has " + ("left" if signals.received else "ended"))
    return OK if signals.received else FAILED


def _find_supervisor(system: System) -> Address:
    found = system.named(SUPERVISOR)
    if found is None:
        raise UnreachableError("the node has no supervisor at this moment: try again")
    return found


def _find_worker(system: System, supervisor: Address, name: str) -> ProcessView | None:
    view = system.ask(supervisor, DescribeNode(), ANSWER_SECONDS)
    if not isinstance(view, NodeView):
        raise UnreachableError("the supervisor does not answer")
    return next((worker for worker in view.workers if worker.name == name), None)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


ENOUGH: Final = 65_536
"""The limit of open files that a node asks for; none of its processes comes near it."""
SPARK_NEEDS: Final = 512
"""A worker's Spark 4.3 (Java 17) opens 310 files before its first job, and more with each task."""


class TooFewOpenFilesError(Exception):
    """The limit of open files is too low for Spark, and this user may not raise it."""


def raise_open_files(*, for_spark: bool) -> None:
    """Raise the limit of open files for this process and its children.

    Raises `TooFewOpenFilesError` if the limit stays too low for Spark.
    """
    soft, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if most == resource.RLIM_INFINITY else min(most, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
        soft = wanted
    if for_spark and soft != resource.RLIM_INFINITY and soft < SPARK_NEEDS:
        raise TooFewOpenFilesError(
            f"a process may have {soft} files open here (nofile), and each worker's Spark needs"
            f" {SPARK_NEEDS} or more: raise the limit (ulimit -Hn, LimitNOFILE= of systemd,"
            " --ulimit nofile= of docker), or set engine=noop to run nothing"
        )
