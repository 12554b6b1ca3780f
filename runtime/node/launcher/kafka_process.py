"""The launcher's handle of the Kafka listener: it is replaced when it ends or does not echo."""

import select
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from ....actors.group.state.settings import ShardLimits
from ....events.log.process import ProcessId
from ....events.placement import split_list
from ...cluster.spec import KafkaSpec, NodeSpec
from ...config.kafka_keys import parse_address, parse_kafka_listener
from ...config.load import Config
from ...processes.liveness import STARTS_FOR, ProcessProbe, Silence
from ...processes.tied import BriefedProcess
from ..process_files import ProcessFiles

MINUTE_MS: Final = 60_000


class EchoQuestion:
    """A byte that a process was sent by a socket, and sends back from its loop."""

    def __init__(self, end: socket.socket) -> None:
        """Send the byte; nothing is waited for."""
        self._socket = end
        self.is_lost = False
        """Whether the process has closed its end."""
        try:
            end.send(b"?", socket.MSG_DONTWAIT)
        except OSError:
            self.is_lost = True

    def answer(self, seconds: float) -> object | None:
        """Wait for the byte, for some seconds at most."""
        if self.is_lost or not select.select([self._socket], [], [], seconds)[0]:
            return None
        try:
            if self._socket.recv(1):
                return True
        except OSError:
            pass
        self.is_lost = True
        return None

    def close(self) -> None:
        """Do nothing: the socket belongs to the process."""


class AskedProcess(BriefedProcess):
    """A process that gets one end of a socket pair, by its number, as the last argument."""

    def __init__(
        self,
        module: str,
        brief: Mapping[str, object],
        record: Callable[[ProcessId], None],
        node: NodeSpec,
    ) -> None:
        """Prepare `python -m MODULE`, as its base does."""
        super().__init__(module, brief, record, node.backoff_ms)
        limit_seconds = node.answer_timeout_ms / 1000
        self.probe = ProcessProbe(limit_seconds)
        self._start = Silence(limit_seconds * STARTS_FOR, 0.0)
        """How long it has been starting."""
        self._has_begun = False
        """Whether it has answered once."""
        self._end: socket.socket | None = None
        """This process's end of the pair."""

    @property
    def probes(self) -> Sequence[ProcessProbe]:
        """The probe of its echoes."""
        return (self.probe,)

    @property
    def silent_seconds(self) -> float:
        """How long it has not answered; 0 until it has begun."""
        return self.probe.silence.seconds if self._has_begun else 0.0

    def _ask(self) -> Silence | None:
        if (end := self._end) is None:
            return None
        if self.probe.look(lambda: EchoQuestion(end)) is not None:
            self._has_begun = True
        self._start.look(time.monotonic(), is_silent=not self._has_begun)
        return self.probe.silence if self._has_begun else self._start

    def _spawn(
        self, command: Sequence[str], pass_fds: Sequence[int] = ()
    ) -> "subprocess.Popen[bytes]":
        self._forget_answers()
        self._start = Silence(self._start.limit_seconds, time.monotonic())
        self._end, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            return super()._spawn([*command, str(number)], [*pass_fds, number])

    def _forget_answers(self) -> None:
        """Forget what the process has answered so far; a new one has another socket."""
        super()._forget_answers()
        self._has_begun = False
        end, self._end = self._end, None
        if end is not None:
            end.close()


class KafkaProcess(AskedProcess):
    """The process that listens for Kafka clients; their groups are in other processes."""

    title = "Kafka listener"

    def __init__(self, files: ProcessFiles, node: NodeSpec, spec: KafkaSpec) -> None:
        """Prepare the command and its input; nothing is started yet."""
        brief = {
            "group": node.group_id,
            "data_dir": str(node.data_dir),
            "log": asdict(node.log),
            "kafka": asdict(spec),
        }
        record = files.recorder("kafka", "listener")
        super().__init__("fairlead.runtime.kafka", brief, record, node)


def kafka_spec(config: Config) -> KafkaSpec | None:
    """Build the specification of the Kafka listener from the configuration; None if it is off."""
    if not config.kafka_listeners:
        return None
    listener = parse_kafka_listener(config.kafka_listeners)
    return KafkaSpec(
        *listener.address,
        config.kafka_advertised_host_name or listener.address.host,
        tuple(parse_address(each) for each in split_list(config.kafka_bootstrap_servers)),
        config.kafka_group_shards,
        config.kafka_max_connections,
        config.kafka_max_connections_per_ip,
        config.group_consumer_session_timeout_ms,
        config.group_consumer_heartbeat_interval_ms,
        config.offsets_retention_minutes * MINUTE_MS,
        config.offsets_retention_check_interval_ms,
        listener.is_encrypted,
        config.kafka_ssl_keystore_location,
        config.kafka_ssl_truststore_location,
        config.group_consumer_assignment_interval_ms,
        ShardLimits(
            config.kafka_max_groups, config.kafka_max_members, config.kafka_max_metadata_bytes
        ),
    )
