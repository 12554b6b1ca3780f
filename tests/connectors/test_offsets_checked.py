"""Offsets that people set: their members, and where a source goes that cannot seek."""

from datetime import UTC, datetime

import pytest

from fairlead.events.commits import Document
from fairlead.runtime.pipeline.spi.errors import OffsetRefused
from fairlead.runtime.pipeline.spi.offsets import (
    PartitionOffset,
    Seek,
    SeekEnd,
    check_members,
    seek_from_the_beginning,
)

KINDS = {"topic": str, "partition": int}


def refusal(document: Document) -> str:
    """Return why a document is refused; "": it is taken."""
    try:
        check_members("partition", document, KINDS)
    except OffsetRefused as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize(
    ("document", "flaw"),
    [
        ({"topic": "t"}, "partition.partition is missing"),
        ({"topic": "t", "partition": 0, "x": 1}, "partition.x is unknown"),
        ({"topic": "t", "partition": "0"}, "partition.partition must be a whole number, not '0'"),
        ({"topic": "t", "partition": 0.0}, "partition.partition must be a whole number, not 0.0"),
        ({"topic": "t", "partition": True}, "partition.partition must be a whole number, not True"),
        ({"topic": None, "partition": 0}, "partition.topic must be a text, not None"),
        ({}, "its members are topic (a text), partition (a whole number)"),
    ],
)
def test_a_document_has_just_the_members_of_its_source_each_of_its_type(
    document: Document, flaw: str
) -> None:
    assert flaw in refusal(document)


def test_a_document_with_just_these_members_is_taken() -> None:
    assert refusal({"topic": "t", "partition": 0}) == ""


def test_a_source_that_cannot_seek_goes_to_its_beginning_by_losing_its_offsets() -> None:
    known = [PartitionOffset({"a": 1}, {"b": 2}), PartitionOffset({"a": 2}, {"b": 3})]
    assert seek_from_the_beginning(SeekEnd.EARLIEST, known) == [
        PartitionOffset({"a": 1}, None),
        PartitionOffset({"a": 2}, None),
    ]


@pytest.mark.parametrize(
    ("to", "place"),
    [(SeekEnd.LATEST, "not to latest;"), (datetime(2026, 1, 1, tzinfo=UTC), "not to a time;")],
)
def test_a_source_that_cannot_seek_refuses_any_other_place(to: Seek, place: str) -> None:
    with pytest.raises(OffsetRefused, match=place):
        seek_from_the_beginning(to, [])
