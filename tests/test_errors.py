"""Errors have the numbers that Kafka gave them, and the docs say the same as the code."""

from pathlib import Path

from fairlead.actors.messages.errors import MEANINGS, SUCCESS, Error, Remedy

DOCUMENT = Path(__file__).parents[1] / "actors" / "ERRORS.md"
KAFKA_LAST = 131

KAFKA = {
    "NONE": 0,
    "UNKNOWN_TOPIC_OR_PARTITION": 3,
    "OFFSET_METADATA_TOO_LARGE": 12,
    "GROUP_SUBSCRIBED_TO_TOPIC": 86,
    "STALE_MEMBER_EPOCH": 113,
    "INVALID_PRODUCER_EPOCH": 47,
    "INVALID_TXN_STATE": 48,
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": 53,
    "UNSTABLE_OFFSET_COMMIT": 88,
    "UNKNOWN_TOPIC_ID": 100,
    "INVALID_REGULAR_EXPRESSION": 128,
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "COORDINATOR_NOT_AVAILABLE": 15,
    "NOT_COORDINATOR": 16,
    "ILLEGAL_GENERATION": 22,
    "INCONSISTENT_GROUP_PROTOCOL": 23,
    "INVALID_GROUP_ID": 24,
    "UNKNOWN_MEMBER_ID": 25,
    "INVALID_SESSION_TIMEOUT": 26,
    "REBALANCE_IN_PROGRESS": 27,
    "TOPIC_AUTHORIZATION_FAILED": 29,
    "GROUP_AUTHORIZATION_FAILED": 30,
    "UNSUPPORTED_VERSION": 35,
    "INVALID_CONFIG": 40,
    "INVALID_REQUEST": 42,
    "NON_EMPTY_GROUP": 68,
    "GROUP_ID_NOT_FOUND": 69,
    "MEMBER_ID_REQUIRED": 79,
    "GROUP_MAX_SIZE_REACHED": 81,
    "FENCED_INSTANCE_ID": 82,
    "FENCED_MEMBER_EPOCH": 110,
    "UNRELEASED_INSTANCE_ID": 111,
    "UNSUPPORTED_ASSIGNOR": 112,
}

OURS = {
    "COMPUTE_ASSIGNMENT": 20_000,
    "INVALID_ASSIGNMENT": 20_001,
    "FENCED": 20_002,
    "ALREADY_EXISTS": 20_003,
    "UNKNOWN_CONNECTOR": 20_004,
}


def test_the_numbers_on_the_wire_never_change() -> None:
    found = {error.value: meaning.code for error, meaning in MEANINGS.items()}
    assert found == KAFKA | OURS
    assert set(MEANINGS) == set(Error)


def test_what_kafka_has_not_is_numbered_where_kafka_numbers_nothing() -> None:
    assert max(KAFKA.values()) <= KAFKA_LAST < 20_000 == min(OURS.values())
    assert max(OURS.values()) < 1 << 15, "the wire has 16 bit for it"


def test_what_is_no_error_needs_no_remedy() -> None:
    harmless = {error for error, each in MEANINGS.items() if each.remedy is Remedy.NOTHING}
    assert harmless == SUCCESS


def test_the_table_in_the_docs_is_the_one_in_the_code() -> None:
    rows = [
        f"| {error.value} | {code} | {remedy.value} | {advice} |"
        for error, (code, remedy, advice) in sorted(MEANINGS.items(), key=lambda item: item[1].code)
    ]
    told = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    assert told[1:] == rows
