"""The commands `up`, `down` and `worker`: run, stop or extend the node of a data folder.

`up` refuses before it touches the data folder: another node runs on it, here or on another host, or
a newer version of fairlead has used it. What it can refuse later is told in a sentence as well, and
nothing is left running. `down` ends a node, and also what is left of one whose launcher is gone.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from ....actors.timing import Backoff
from ....actors.transport.actor import Address
from ....actors.transport.log_format import FILE
from ....actors.transport.ports import LOOPBACK, PortTakenError, check_free
from ....actors.transport.system import System, UnreachableError, connect
from ....events.log.process import ProcessId, is_alive, kill
from ....events.stores.port import StoreSettingsError
from ...cluster.data_version import NewerDataError, note_data_version, require_known_data
from ...cluster.lease import require_free
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
from ...config.references.resolving import ReferenceBroken
from ...config.references.rest_brief import open_tls
from ...pipeline.installed import DISTRIBUTION
from ...processes.open_files import TooFewOpenFilesError, raise_open_files
from ...processes.service_manager import ServiceManager
from ...security.followed_files import FileRefused, read_owned
from ..process_files import ProcessFiles
from .actor_system import NodeFailedError
from .detached import run_detached
from .kafka_process import check_kafka_tls, flaw_in_reach, kafka_spec
from .launcher import Launcher
from .other_users import list_other_users, warn_of_other_users
from .rest_process import DEFAULTS, RestStart, prepare_rest

OK, FAILED, UNREACHABLE = 0, 1, 3
DOWN_SECONDS = 60.0
WATCH_SECONDS = 0.5
ANSWER_SECONDS = 10.0
_REFUSALS = KeyRefusedError, PortTakenError, FileRefused, ReferenceBroken, StoreSettingsError
"""With which a node does not start; each says what to do."""


def node_spec(config: Config, rest_port: int) -> NodeSpec:
    """Build the specification of a node from its configuration."""
    kafka, store = kafka_spec(config), config.store()
    if store is not None:
        address = f"{kafka.advertised_host}:{kafka.port}" if kafka else ""
        store = replace(store, address=address, version=version(DISTRIBUTION))
    spec = NodeSpec(
        data_dir=config.data_path,
        group_id=config.group_id,
        place=config.place(rest_port),
        workers=(),
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
            by_arrow=config.engine_lane == "auto",
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
        retention=config.retention(),
        log=config.log_output(),
        kafka=kafka,
        plugins=config.plugin_spec(),
        store=store,
    )
    names = map(spec.name_worker, range(1, config.workers + 1))
    return replace(spec, workers=tuple(names))


def up(
    config: Config,
    sources: Mapping[str, str] = DEFAULTS,
    *,
    new_key: bool = False,
    detach: bool = False,
) -> int:
    """Run this node until a signal ends it; return the exit code.

    `sources` has the source of each setting that is not a default, for those who ask the node.

    With `new_key` a missing cluster key is replaced, even if there are logs. With `detach` the node
    is another process, and this one returns when it is ready.
    """
    if not detach:
        return _claim_and_run(config, sources, new_key=new_key, end_hint="Ctrl-C ends it")
    detached = replace(config, log_to=FILE)  # nobody reads its standard output
    hint = "`fairlead down` ends it"
    try:
        return run_detached(
            config.data_path,
            lambda: _claim_and_run(detached, sources, new_key=new_key, end_hint=hint),
        )
    except OSError as error:
        return _refuse_folder(error)


def _refuse_folder(error: OSError) -> int:
    """Say that the data folder cannot be used; return the exit code."""
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    _say(f"not started: {what}. Nothing was changed; `fairlead doctor` examines the data folder")
    return FAILED


def _claim_and_run(
    config: Config, sources: Mapping[str, str], *, new_key: bool, end_hint: str
) -> int:
    """Run this node in this process until a signal ends it; return the exit code."""
    service = ServiceManager(os.environ)
    folder = RunFolder(config.data_path)
    try:
        raise_open_files(for_spark=config.engine == "spark")
        require_known_data(config.data_path)
        require_free(config.data_path, _say)
        folder.claim()
    except (NodeRunsError, NewerDataError, TooFewOpenFilesError) as error:
        _say(f"not started: {error}")
        return FAILED
    except OSError as error:
        return _refuse_folder(error)
    try:
        config.log_output().begin(config.data_path / "logs" / "up.log", is_terminal=True)
        ProcessFiles(folder.path).end_all()
        _check_ports(config)
        _check_files(config)
        if config.cluster_key_file:
            shared = Path(config.cluster_key_file).expanduser().absolute()
            folder.copy_key(read_owned(shared, is_secret=True), shared, may_replace=new_key)
        folder.key(may_replace=new_key)
        note_data_version(config.data_path)
        reach = [f"warning: {flaw}"] if (flaw := flaw_in_reach(config)) else []
        for warning in (*folder_mode_warnings(config.data_path), *reach):
            _say(warning)
        return _run(config, prepare_rest(config, sources), folder, service, end_hint)
    except _REFUSALS as error:
        _say(f"not started: {error}")
        return FAILED
    finally:
        folder.release()


def _check_files(config: Config) -> None:
    """Raise one of the refusals if a file that the settings name cannot be used."""
    if config.needs_tls:
        open_tls(config.tls_values(), config.data_path)
    check_kafka_tls(config)
    if store := config.store():
        store.check()


def _check_ports(config: Config) -> None:
    """Raise `PortTakenError` if a port of the node is in use."""
    kafka = kafka_spec(config)
    listeners = [each for each in config.all_rest_listeners() if not each.is_unix]
    for key, (host, port) in (
        *(("listeners", each.address) for each in listeners),
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


def _run(
    config: Config, rest: RestStart, folder: RunFolder, service: ServiceManager, end_hint: str
) -> int:
    launcher = Launcher(node_spec(config, rest.port), folder, config.actor_port, rest, service)
    try:
        if launcher.start(rest.url):
            workers = f"{config.workers} worker{'' if config.workers == 1 else 's'}"
            _say(
                f"group {config.group_id} is up with {workers}; REST on {rest.urls}, "
                f"data in {config.data_path}; {end_hint}"
            )
            if launcher.flaw:
                _say(f"warning: nothing is decided here until the store answers: {launcher.flaw}")
            if warning := warn_of_other_users(config, list_other_users()):
                _say(warning)
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
