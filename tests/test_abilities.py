"""How a worker's word about what it can take is read."""

import json

import pytest

from fairlead.events.placement import (
    COLD,
    ORDINARY,
    WARM,
    Abilities,
    abilities,
    encode_abilities,
    is_warm,
)


@pytest.mark.parametrize(
    ("metadata", "warm"),
    [
        (COLD, False),
        (b'{"capacity": 0, "more": [1]}', False),
        (WARM, True),
        (b"", True),
        (b"{}", True),
        (b'{"capacity": 2}', True),
        (b'{"capacity": false}', True),
        (b'{"capacity": 0.0}', True),
        (b'{"capacity": null}', True),
        (b"[0]", True),
        (b"0", True),
        (b"{", True),
        (b"\xff\xfe\x00", True),
        (b"[" * 100_000, True),
        (b'{"capacity": ' + b"9" * 10_000 + b"}", True),
    ],
    ids=range(15),
)
def test_only_a_plain_capacity_0_is_no_capacity(metadata: bytes, warm: bool) -> None:
    assert is_warm(metadata) is warm


def test_what_is_written_is_read() -> None:
    able = Abilities(7, frozenset({"gpu", "ssd"}))
    assert encode_abilities(able) == b'{"capacity":7,"tags":["gpu","ssd"]}'
    assert abilities(encode_abilities(able)) == able


@pytest.mark.parametrize(
    "metadata",
    [b'{"capacity":-1}', b'{"capacity":1001}', b'{"capacity":true}', b'{"tags":"gpu"}'],
)
def test_what_is_out_of_range_is_ordinary(metadata: bytes) -> None:
    assert abilities(metadata) == ORDINARY


@pytest.mark.parametrize("tag", ["", "a\tb", "a,b", "\ud800", "x" * 65])
def test_a_tag_that_no_config_could_ask_for_is_none(tag: str) -> None:
    said = json.dumps({"tags": ["gpu", tag]}).encode()
    assert abilities(said) == Abilities(1, frozenset({"gpu"}))


def test_of_too_many_tags_the_first_32_count() -> None:
    tags = [f"t{n}" for n in range(40)]
    said = json.dumps({"tags": tags}).encode()
    assert abilities(said) == Abilities(1, frozenset(tags[:32]))


def test_a_tag_that_is_no_text_is_none() -> None:
    assert abilities(b'{"tags":["gpu",1,null]}') == Abilities(1, frozenset({"gpu"}))
