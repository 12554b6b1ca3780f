"""Which APIs are served here, which are proxied with changes, and which are hidden from clients.

Versions are those of Kafka 4.3. APIs in no table are proxied to the broker unchanged.
"""

from typing import Final

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR = 0, 1, 2, 3, 10
JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP = 11, 12, 13, 14
DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS = 15, 16, 18
DELETE_GROUPS, DESCRIBE_CLUSTER = 42, 60
OFFSET_COMMIT, OFFSET_FETCH, OFFSET_DELETE = 8, 9, 47
SASL_HANDSHAKE, SASL_AUTHENTICATE = 17, 36
DESCRIBE_CONFIGS, ALTER_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 33, 44
LIST_CONFIG_RESOURCES = 74
ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT = 25, 28
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 68, 69
CONNECT_HEARTBEAT, CONNECT_PREPARE, CONNECT_INSTALL, CONNECT_ASK = range(10_848, 10_852)
CONNECT_DESCRIBE = 10_852
"""The API keys of connect groups, the proposals' and two of ours: no broker has them, and clients
ignore unknown keys."""
PRIVATE: Final = (
    CONNECT_HEARTBEAT,
    CONNECT_PREPARE,
    CONNECT_INSTALL,
    CONNECT_ASK,
    CONNECT_DESCRIBE,
)

SERVED: Final = {
    JOIN_GROUP: (0, 9),
    HEARTBEAT: (0, 4),
    LEAVE_GROUP: (0, 5),
    SYNC_GROUP: (0, 5),
    DESCRIBE_GROUPS: (0, 6),
    LIST_GROUPS: (0, 5),
    DELETE_GROUPS: (0, 2),
    OFFSET_COMMIT: (2, 10),
    OFFSET_FETCH: (1, 10),
    OFFSET_DELETE: (0, 0),
    TXN_OFFSET_COMMIT: (0, 4),
    CONSUMER_GROUP_HEARTBEAT: (0, 1),
    CONSUMER_GROUP_DESCRIBE: (0, 1),
    CONNECT_HEARTBEAT: (0, 0),
    CONNECT_PREPARE: (0, 0),
    CONNECT_INSTALL: (0, 0),
    CONNECT_ASK: (0, 0),
    CONNECT_DESCRIBE: (0, 0),
}
"""The served APIs: the first and last version, by key. Later versions of TxnOffsetCommit belong to
the transactions of `TRANSACTIONS`."""

BY_PROTOCOL: Final = {
    "connect": frozenset(PRIVATE),
    "classic": frozenset({JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP}),
    "consumer": frozenset({CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE}),
}
"""The APIs of the members of each protocol, by the values of `group.protocols.allowed`."""

REWRITTEN: Final = {
    METADATA: (0, 13),
    FIND_COORDINATOR: (0, 6),
    API_VERSIONS: (0, 4),
    DESCRIBE_CLUSTER: (0, 2),
}
"""The APIs whose broker responses are rewritten; FindCoordinator only if it is not for a group."""

SPLIT: Final = {
    DESCRIBE_CONFIGS: (1, 4),
    ALTER_CONFIGS: (0, 2),
    INCREMENTAL_ALTER_CONFIGS: (0, 1),
    LIST_CONFIG_RESOURCES: (0, 1),
}
"""The APIs for configs: those of groups are served here, all others by a broker."""

CAPPED: Final = {PRODUCE: (0, 9), FETCH: (0, 15)}
"""The APIs with limited versions: responses of later versions may have broker addresses."""

SASL: Final = {SASL_HANDSHAKE: (0, 1), SASL_AUTHENTICATE: (0, 2)}
"""The APIs of authentication, which the listener answers for itself."""

RANGES: Final = {**SERVED, **REWRITTEN, **SPLIT, **CAPPED, **SASL}
"""The advertised version ranges; for other APIs those of the broker."""

WITHHELD: Final = frozenset({76, 77, 78, 79, 88, 89, 90, 91, 92})
"""APIs of group coordinators that are not supported, and so not advertised: share groups and
streams groups. ApiVersions does not name them."""

OF_EVERYBODY: Final = frozenset(
    {PRODUCE, FETCH, LIST_OFFSETS, ADD_OFFSETS_TO_TXN, 22, 23, 24, 26, 71, 72, 75}
)
"""The proxied APIs of producers and consumers; all others administer the brokers, or look at them:
InitProducerId, OffsetForLeaderEpoch, AddPartitionsToTxn, EndTxn, telemetry,
DescribeTopicPartitions."""

TRANSACTIONS: Final = "transaction.version"
"""A broker feature that needs later versions of Produce, and so is not advertised."""

MOST: Final = (1 << 15) - 1

NAMES: Final = {
    PRODUCE: "Produce",
    FETCH: "Fetch",
    LIST_OFFSETS: "ListOffsets",
    METADATA: "Metadata",
    FIND_COORDINATOR: "FindCoordinator",
    JOIN_GROUP: "JoinGroup",
    HEARTBEAT: "Heartbeat",
    LEAVE_GROUP: "LeaveGroup",
    SYNC_GROUP: "SyncGroup",
    DESCRIBE_GROUPS: "DescribeGroups",
    LIST_GROUPS: "ListGroups",
    API_VERSIONS: "ApiVersions",
    DELETE_GROUPS: "DeleteGroups",
    DESCRIBE_CLUSTER: "DescribeCluster",
    OFFSET_COMMIT: "OffsetCommit",
    OFFSET_FETCH: "OffsetFetch",
    OFFSET_DELETE: "OffsetDelete",
    DESCRIBE_CONFIGS: "DescribeConfigs",
    ALTER_CONFIGS: "AlterConfigs",
    INCREMENTAL_ALTER_CONFIGS: "IncrementalAlterConfigs",
    LIST_CONFIG_RESOURCES: "ListConfigResources",
    ADD_OFFSETS_TO_TXN: "AddOffsetsToTxn",
    TXN_OFFSET_COMMIT: "TxnOffsetCommit",
    SASL_HANDSHAKE: "SaslHandshake",
    SASL_AUTHENTICATE: "SaslAuthenticate",
    CONSUMER_GROUP_HEARTBEAT: "ConsumerGroupHeartbeat",
    CONSUMER_GROUP_DESCRIBE: "ConsumerGroupDescribe",
    CONNECT_HEARTBEAT: "ConnectGroupHeartbeat",
    CONNECT_PREPARE: "ConnectGroupPrepareAssignment",
    CONNECT_INSTALL: "ConnectGroupInstallAssignment",
    CONNECT_ASK: "ConnectGroupAsk",
    CONNECT_DESCRIBE: "ConnectGroupDescribe",
}
"""The names of APIs in metrics; others are `other`."""


def is_served(api: int, version: int) -> bool:
    """Return whether this version of an API is allowed.

    An ApiVersions request of an unknown version is left for the broker to refuse: clients begin
    with it.
    """
    first, last = RANGES.get(api, (0, MOST))
    is_known = first <= version <= last or (api == API_VERSIONS and version > last)
    return is_known and api >= 0 and api not in WITHHELD
