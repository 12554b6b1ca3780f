"""The errors of the protocol: their names and numbers on the wire, and what to do about each.

A number that Kafka has is Kafka's; what Kafka does not know is counted from 20,000,
far behind its last (131 in Kafka 4). `actors/ERRORS.md` is the same table to read.
Messages list names with `listing`, never more of them than somebody reads.
"""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import NamedTuple


class Error(Enum):
    """The errors that a reply may have; spelled as on the wire."""

    NONE = "NONE"
    COMPUTE_ASSIGNMENT = "COMPUTE_ASSIGNMENT"
    COORDINATOR_LOAD_IN_PROGRESS = "COORDINATOR_LOAD_IN_PROGRESS"
    COORDINATOR_NOT_AVAILABLE = "COORDINATOR_NOT_AVAILABLE"
    NOT_COORDINATOR = "NOT_COORDINATOR"
    UNKNOWN_TOPIC_OR_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"
    OFFSET_METADATA_TOO_LARGE = "OFFSET_METADATA_TOO_LARGE"
    GROUP_SUBSCRIBED_TO_TOPIC = "GROUP_SUBSCRIBED_TO_TOPIC"
    STALE_MEMBER_EPOCH = "STALE_MEMBER_EPOCH"
    INVALID_PRODUCER_EPOCH = "INVALID_PRODUCER_EPOCH"
    INVALID_TXN_STATE = "INVALID_TXN_STATE"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    UNSTABLE_OFFSET_COMMIT = "UNSTABLE_OFFSET_COMMIT"
    UNKNOWN_TOPIC_ID = "UNKNOWN_TOPIC_ID"
    INVALID_REGULAR_EXPRESSION = "INVALID_REGULAR_EXPRESSION"
    TOPIC_AUTHORIZATION_FAILED = "TOPIC_AUTHORIZATION_FAILED"
    GROUP_AUTHORIZATION_FAILED = "GROUP_AUTHORIZATION_FAILED"
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION"
    INCONSISTENT_GROUP_PROTOCOL = "INCONSISTENT_GROUP_PROTOCOL"
    INVALID_GROUP_ID = "INVALID_GROUP_ID"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    INVALID_SESSION_TIMEOUT = "INVALID_SESSION_TIMEOUT"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    INVALID_REQUEST = "INVALID_REQUEST"
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"
    MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"
    GROUP_MAX_SIZE_REACHED = "GROUP_MAX_SIZE_REACHED"
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"
    FENCED_MEMBER_EPOCH = "FENCED_MEMBER_EPOCH"
    UNRELEASED_INSTANCE_ID = "UNRELEASED_INSTANCE_ID"
    UNSUPPORTED_ASSIGNOR = "UNSUPPORTED_ASSIGNOR"
    INVALID_ASSIGNMENT = "INVALID_ASSIGNMENT"
    NON_EMPTY_GROUP = "NON_EMPTY_GROUP"
    FENCED = "FENCED"
    """A commit or a task split came with a token that is not the current one."""
    INVALID_CONFIG = "INVALID_CONFIG"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    UNKNOWN_CONNECTOR = "UNKNOWN_CONNECTOR"


SUCCESS = frozenset({Error.NONE, Error.COMPUTE_ASSIGNMENT})
"""The answers that refresh a session: COMPUTE_ASSIGNMENT is success plus a request."""


class Remedy(Enum):
    """The reaction to an error."""

    NOTHING = "-"
    """It is none."""

    RETRY = "retriable"
    """The same request, sent again after a while, may succeed."""

    REJOIN = "rejoin"
    """Stop everything, then join anew: same member id, epoch 0."""

    FATAL = "fatal"
    """Nothing, until somebody changes the request, the configuration or the group."""


class Meaning(NamedTuple):
    """An error's number on the wire (int16), what helps against it, and how."""

    code: int
    remedy: Remedy
    advice: str


MEANINGS: Mapping[Error, Meaning] = {
    Error.NONE: Meaning(0, Remedy.NOTHING, "nothing: it went well"),
    Error.UNKNOWN_TOPIC_OR_PARTITION: Meaning(
        3,
        Remedy.RETRY,
        "name a topic that exists, and a partition of it; a new one is known here after a while",
    ),
    Error.OFFSET_METADATA_TOO_LARGE: Meaning(
        12, Remedy.FATAL, "shorten the metadata that goes with the offset"
    ),
    Error.COORDINATOR_LOAD_IN_PROGRESS: Meaning(
        14, Remedy.RETRY, "wait: the group is being rebuilt from its log; send it again"
    ),
    Error.COORDINATOR_NOT_AVAILABLE: Meaning(
        15, Remedy.RETRY, "wait: the group has no coordinator at the moment; send it again"
    ),
    Error.NOT_COORDINATOR: Meaning(
        16, Remedy.RETRY, "find the group's coordinator anew, and send it there"
    ),
    Error.ILLEGAL_GENERATION: Meaning(
        22, Remedy.REJOIN, "for classic members: the generation is over; send JoinGroup again"
    ),
    Error.INCONSISTENT_GROUP_PROTOCOL: Meaning(
        23,
        Remedy.FATAL,
        "for classic members: join with a protocol type and a protocol that all members have,"
        " and with metadata in its form",
    ),
    Error.INVALID_GROUP_ID: Meaning(
        24,
        Remedy.FATAL,
        "name another group: the id is empty or too long, or that of the node's own workers, whose"
        " group does not take this call",
    ),
    Error.UNKNOWN_MEMBER_ID: Meaning(
        25,
        Remedy.REJOIN,
        "on a heartbeat: stop everything and rejoin with epoch 0; on Prepare or Install: drop"
        " this computation and nothing else",
    ),
    Error.INVALID_SESSION_TIMEOUT: Meaning(
        26, Remedy.FATAL, "for classic members: choose a session timeout that the group allows"
    ),
    Error.REBALANCE_IN_PROGRESS: Meaning(
        27, Remedy.RETRY, "for classic members: send JoinGroup again"
    ),
    Error.TOPIC_AUTHORIZATION_FAILED: Meaning(
        29, Remedy.FATAL, "for consumers: have the right to the topic granted (`kafka.acls`)"
    ),
    Error.GROUP_AUTHORIZATION_FAILED: Meaning(
        30, Remedy.FATAL, "have the group's owner allow it, or use another key"
    ),
    Error.UNSUPPORTED_VERSION: Meaning(
        35,
        Remedy.FATAL,
        "use a version, a protocol or a kind that the message names; consumers commit with version"
        " 9 or later, which has member epochs",
    ),
    Error.INVALID_CONFIG: Meaning(40, Remedy.FATAL, "correct the setting that the message names"),
    Error.INVALID_REQUEST: Meaning(42, Remedy.FATAL, "correct the field that the message names"),
    Error.INVALID_PRODUCER_EPOCH: Meaning(
        47, Remedy.FATAL, "close the producer: another one with its transactional id has begun"
    ),
    Error.INVALID_TXN_STATE: Meaning(
        48, Remedy.FATAL, "close the producer: its transaction is not open at the brokers"
    ),
    Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Meaning(
        53, Remedy.FATAL, "have the right to the transactional id granted (`kafka.acls`)"
    ),
    Error.NON_EMPTY_GROUP: Meaning(
        68, Remedy.FATAL, "have all members leave first, or wait until their sessions expire"
    ),
    Error.GROUP_ID_NOT_FOUND: Meaning(
        69, Remedy.REJOIN, "stop everything and join with epoch 0, which makes the group"
    ),
    Error.MEMBER_ID_REQUIRED: Meaning(
        79, Remedy.RETRY, "for classic members: send JoinGroup again with the id of the answer"
    ),
    Error.GROUP_MAX_SIZE_REACHED: Meaning(
        81, Remedy.FATAL, "remove a member, or raise group.max.size"
    ),
    Error.FENCED_INSTANCE_ID: Meaning(
        82, Remedy.FATAL, "another member took over the instance id: give each worker its own"
    ),
    Error.GROUP_SUBSCRIBED_TO_TOPIC: Meaning(
        86, Remedy.FATAL, "have the members give the topic up first, or delete other offsets"
    ),
    Error.UNSTABLE_OFFSET_COMMIT: Meaning(
        88, Remedy.RETRY, "wait: a transaction that has not ended may change the offset; ask again"
    ),
    Error.UNKNOWN_TOPIC_ID: Meaning(
        100, Remedy.RETRY, "name a topic that exists by its id of now; a new one is known soon"
    ),
    Error.FENCED_MEMBER_EPOCH: Meaning(
        110,
        Remedy.REJOIN,
        "on a heartbeat: stop everything and rejoin with epoch 0; on Prepare or Install: send"
        " it again with the member's epoch of now",
    ),
    Error.UNRELEASED_INSTANCE_ID: Meaning(
        111,
        Remedy.RETRY,
        "wait for two session timeouts, since a process that was killed expires first; if it"
        " goes on, two live processes have one id: give each its own",
    ),
    Error.UNSUPPORTED_ASSIGNOR: Meaning(
        112, Remedy.FATAL, "offer an assignor that all members of the group can run"
    ),
    Error.STALE_MEMBER_EPOCH: Meaning(
        113, Remedy.RETRY, "for consumers: send it again with the member's epoch of now"
    ),
    Error.INVALID_REGULAR_EXPRESSION: Meaning(
        128, Remedy.FATAL, "correct the pattern: it must be a regular expression of RE2"
    ),
    Error.COMPUTE_ASSIGNMENT: Meaning(
        20_000, Remedy.NOTHING, "all went well; in addition compute a target: Prepare, Install"
    ),
    Error.INVALID_ASSIGNMENT: Meaning(
        20_001,
        Remedy.FATAL,
        "correct the assignor: the message names the resource; the old target stands, and a"
        " computation is asked for again after a back-off",
    ),
    Error.FENCED: Meaning(
        20_002, Remedy.FATAL, "end the task: its fencing token is not the current one any more"
    ),
    Error.ALREADY_EXISTS: Meaning(
        20_003, Remedy.FATAL, "choose another name, or change the connector that has it"
    ),
    Error.UNKNOWN_CONNECTOR: Meaning(
        20_004, Remedy.FATAL, "name a connector of the group, or create it first"
    ),
}


LONGEST_LIST = 20
"""How many names a sentence lists at most."""


def listing(names: Collection[str], between: str = ", ", last: str = " and ") -> str:
    """Return names in order, joined by words: the first few, and how many more there are."""
    shown = sorted(names)[:LONGEST_LIST]
    more = len(names) - len(shown)
    return between.join(shown) + (f"{last}{more} more" if more else "")
