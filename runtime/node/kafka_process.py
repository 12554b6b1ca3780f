"""The launcher's handle of the Kafka listener process."""

from dataclasses import asdict
from typing import Final

from ...actors.group.state.settings import ShardLimits
from ...events.placement import split_list
from ..cluster.spec import KafkaSpec, NodeSpec
from ..config.kafka_keys import parse_kafka_listener, parse_place
from ..config.load import Config
from .processes import ProcessFiles
from .tied_process import BriefedProcess, EngineProcess, TiedProcess

MINUTE_MS: Final = 60_000


class KafkaProcess(BriefedProcess):
    """The process that listens for Kafka clients; their groups are in other processes."""

    kind = "kafka"
    name = "listener"
    title = "Kafka listener"

    def __init__(self, files: ProcessFiles, node: NodeSpec, spec: KafkaSpec) -> None:
        """Prepare the command and its input; nothing is started yet."""
        brief = {
            "group": node.group_id,
            "data_dir": str(node.data_dir),
            "log": asdict(node.log),
            "kafka": asdict(spec),
        }
        super().__init__("fairlead.runtime.kafka", brief, files, node)


def processes_beside(files: ProcessFiles, node: NodeSpec) -> list[TiedProcess]:
    """Return the engine and listener processes that a node needs; none is started yet."""
    engine = [EngineProcess(files, node)] if node.engine.is_shared else []
    listener = [KafkaProcess(files, node, node.kafka)] if node.kafka else []
    return [*engine, *listener]


def kafka_spec(config: Config) -> KafkaSpec | None:
    """Build the specification of the Kafka listener from the configuration; None if it is off."""
    if not config.kafka_listeners:
        return None
    listener = parse_kafka_listener(config.kafka_listeners)
    return KafkaSpec(
        listener.host,
        listener.port,
        config.kafka_advertised_host_name or listener.host,
        tuple(parse_place(each) for each in split_list(config.kafka_bootstrap_servers)),
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
