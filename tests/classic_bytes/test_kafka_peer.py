"""Spoilt bytes beside Kafka's own classes: what these read is read here, and nothing else is.

But for two things. A subscription may lack what came with version 1 or later: Kafka's coordinator
takes that too, where it wants the topics alone. And of an encoded surrogate Java makes one U+FFFD.
"""
# pyright: basic

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.actors.classic.bytes.connect import WorkerMetadata
from fairlead.actors.classic.bytes.consumer import (
    NO_GENERATION,
    PartitionAssignment,
    Subscription,
)
from fairlead.actors.classic.bytes.primitives import UnreadableError
from fairlead_tests.classic_bytes.drawn import READERS, edited, written
from fairlead_tests.conformance.byte_vectors import spell
from fairlead_tests.java_peer import NoPeer, running

VERSION = "4.3.0"
MODULES = ("connect-runtime", "connect-api", "kafka-clients")
SOURCE = Path(__file__).parents[1] / "fairlead_tests" / "classic_bytes" / "BytesPeer.java"
SURROGATE = b"\xed"

NOT_IN_VERSION_0 = {"allocation", "version", "revoked_connectors", "revoked_tasks", "delay"}


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[IO[str], IO[str]]]:
    try:
        with running(tmp_path_factory.mktemp("peer"), SOURCE, MODULES, VERSION) as found:
            yield found
    except NoPeer as reason:
        pytest.skip(str(reason))


def read_here(kind: str, data: bytes) -> Any:
    """What is read here, spelled as the peer does; None if it is refused.

    There any negative generation, and a rack without a name, is none.
    """
    try:
        value = READERS[kind](data)
    except UnreadableError:
        return None
    match value:
        case Subscription():
            return {
                "topics": [*value.topics],
                "user_data": _hex(value.user_data),
                "owned": [*map(list, value.owned)],
                "generation": max(value.generation, NO_GENERATION),
                "rack": value.rack or None,
            }
        case PartitionAssignment():
            partitions = [*map(list, value.partitions)]
            return {"partitions": partitions, "user_data": _hex(value.user_data)}
        case WorkerMetadata() if kind.startswith("eager"):
            return {"url": value.url, "config_offset": value.config_offset}
    left_out = NOT_IN_VERSION_0 if kind.startswith("eager") else set[str]()
    return {name: told for name, told in spell(value).items() if name not in left_out}


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def may_be_short(kind: str, data: bytes) -> bool:
    """Whether fields of the bytes may be missing here, which the peer wants to be there."""
    return kind == "subscription" and data[:2] > b"\x00\x00"


@pytest.mark.soak
@settings(max_examples=10_000)
@given(st.sampled_from([*READERS]), edited(written, most=2) | written)
def test_bytes_are_read_and_refused_as_by_kafkas_own_classes(
    peer: tuple[IO[str], IO[str]], kind: str, data: bytes
) -> None:
    asks, answers = peer
    asks.write(f"{kind} {data.hex()}\n")
    asks.flush()
    theirs, ours = json.loads(answers.readline()), read_here(kind, data)
    if SURROGATE in data:
        assert (theirs is None) == (ours is None) or may_be_short(kind, data)
    elif theirs is not None or not may_be_short(kind, data):
        assert ours == theirs
