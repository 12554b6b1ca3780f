"""The golden bytes of Connect's protocol: what its own classes wrote, read and refused."""
# pyright: basic

from typing import Any

import pytest

from fairlead.actors.assignors.classic.protocol import EAGER, MODES, VERSIONS
from fairlead.actors.classic.bytes.connect import WorkerMetadata, encode_metadata, encode_offers
from fairlead.actors.classic.bytes.primitives import UnreadableError, UnwritableError
from fairlead_tests.conformance.byte_vectors import decode, encode, in_any_order, read_value, spell
from fairlead_tests.conformance.cases import Case


def test_connect_bytes(connect_bytes: Case) -> None:
    told = connect_bytes.told
    match told:
        case {"kind": "offers"}:
            check_offers(told)
        case {"kind": "decode_only", "of": kind}:
            check_reading(kind, told)
        case {"kind": kind, "encode_error": _}:
            with pytest.raises(UnwritableError):
                encode(kind, read_value(kind, told["fields"], told["version"]), told["version"])
        case {"kind": "assignment", "hex": None}:
            check_nothing_is_written(told)
        case {"kind": kind}:
            check_writing(kind, told)
            check_reading(kind, told)


def check_offers(told: dict[str, Any]) -> None:
    version = told["version"]
    (mode,) = (mode for mode, name in MODES.items() if VERSIONS[name] == version)
    offers = encode_offers(mode, read_value("metadata", told["fields"], version))
    assert [{"name": name, "hex": data.hex()} for name, data in offers] == told["protocols"]


def check_nothing_is_written(told: dict[str, Any]) -> None:
    """The instance that stands for no assignment is None here, and null where bytes must be."""
    value = read_value("assignment", told["fields"], told["version"])
    assert value is None
    assert encode_metadata(WorkerMetadata("", 0, value), told["version"])[-4:] == b"\xff" * 4


def check_writing(kind: str, told: dict[str, Any]) -> None:
    """Connectors that Connect puts through a hash set may stand in another order."""
    version, data = told["version"], bytes.fromhex(told["hex"])
    written = encode(kind, read_value(kind, told["fields"], version), version)
    assert len(written) == len(data)
    read = spell(decode(kind, written, version))
    assert in_any_order(told["decoded"]).items() <= in_any_order(read).items()
    if told["exact"]:
        assert encode(kind, read_value(kind, told["decoded"], version), version) == data
        assert encode(kind, decode(kind, data, version), version) == data


def check_reading(kind: str, told: dict[str, Any]) -> None:
    version, data = told["version"], bytes.fromhex(told["hex"])
    if "decode_error" in told:
        with pytest.raises(UnreadableError):
            decode(kind, data, version)
    elif version == EAGER:
        assert told["decoded"].items() <= spell(decode(kind, data, version)).items()
    else:
        assert spell(decode(kind, data, version)) == told["decoded"]
