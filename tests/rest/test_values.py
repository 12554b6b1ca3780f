"""What a request holds is read as it is declared, and each flaw is told with its place."""

from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct

from fairlead.runtime.interfaces.rest.server.values import (
    CONVERT,
    MalformedError,
    RequestFlaw,
    reader_of,
)


def trimmed(value: object) -> object:
    if value == "":
        raise ValueError("is empty")
    return value.strip() if isinstance(value, str) else value


class Inner(Struct, frozen=True, forbid_unknown_fields=True):
    word: Annotated[str, Meta(extra={CONVERT: trimmed})]
    number: Annotated[int, Meta(ge=1, le=9)] | None = None


class Outer(Struct, frozen=True, forbid_unknown_fields=True):
    listed: Annotated[list[Inner], Meta(min_length=1, max_length=2)]
    sums: dict[str, Annotated[int, Meta(ge=0)]] = {}
    is_set: bool = False


def flaws_of(kind: Any, value: object, *, of_text: bool = False) -> list[tuple[Any, ...]]:
    flaws: list[RequestFlaw] = []
    reader_of(kind, of_text=of_text)(value, (), flaws)
    return [tuple(each) for each in flaws]


def test_a_value_is_read_as_it_is_declared() -> None:
    flaws: list[RequestFlaw] = []
    value = {"listed": [{"word": " a "}, {"word": "b", "number": 9}], "sums": {"x": 0}}
    read = reader_of(Outer)(value, (), flaws)
    assert (read, flaws) == (Outer([Inner("a"), Inner("b", 9)], {"x": 0}), [])


def test_all_flaws_are_told_each_with_its_place() -> None:
    value = {
        "listed": [{"word": ""}, {"number": 0, "more": 1}],
        "sums": {"x": -1, "y": True},
        "is_set": "true",
    }
    assert flaws_of(Outer, value) == [
        (("listed", 0, "word"), "is empty"),
        (("listed", 1, "word"), "Field required"),
        (("listed", 1, "number"), "Input should be greater than or equal to 1"),
        (("listed", 1, "more"), "Extra inputs are not permitted"),
        (("sums", "x"), "Input should be greater than or equal to 0"),
        (("sums", "y"), "Input should be a valid integer"),
        (("is_set",), "Input should be a valid boolean"),
    ]


@pytest.mark.parametrize(
    ("count", "flaw"),
    [
        (0, "List should have at least 1 item after validation, not 0"),
        (3, "List should have at most 2 items after validation, not 3"),
    ],
)
def test_a_list_has_its_limits(count: int, flaw: str) -> None:
    assert flaws_of(Outer, {"listed": [{"word": "a"}] * count}) == [(("listed",), flaw)]


def test_numbers_and_booleans_of_a_query_are_texts() -> None:
    for kind, text, value in ((int, "+7", 7), (bool, "YES", True), (bool, "off", False)):
        assert (reader_of(kind, of_text=True)(text, (), []), flaws_of(kind, value)) == (value, [])
    number = "Input should be a valid integer, unable to parse string as an integer"
    for text in ("1.0", " 1", "", "1_0", "9" * 5_000):
        assert flaws_of(int, text, of_text=True) == [((), number)]


def test_the_message_has_no_value_in_it() -> None:
    error = MalformedError([RequestFlaw((), "Field required"), RequestFlaw(("a", 1), "is empty")])
    assert error.message == "the request is malformed: body: Field required; a.1: is empty"
