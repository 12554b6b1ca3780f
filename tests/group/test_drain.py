"""What a process of a group has decided is durable, in the order of its logs, before it speaks."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import pytest

from fairlead.actors.group.host import drain

NOW: Any = object()


class Logs:
    """Two logs that note what is appended; one of them may refuse."""

    def __init__(self, told: list[tuple[str, object]], refuses: str = "") -> None:
        self._told = told
        self._refuses = refuses

    def append_offsets(self, entries: Sequence[Any], now: Any) -> None:
        self._take("offsets", entries, now)

    def append(self, entries: Sequence[Any], now: Any) -> None:
        self._take("control", entries, now)

    def _take(self, name: str, entries: Sequence[Any], now: Any) -> None:
        assert now is NOW
        if name == self._refuses:
            raise OSError(name)
        self._told.append((name, entries))


def shard_of(told: list[tuple[str, object]], ready: Any) -> Any:
    return Mock(ready=lambda _: ready, advance=lambda given: told.append(("advance", given)))


def test_offsets_are_durable_before_the_records_that_speak_of_them_and_both_before_answers() -> (
    None
):
    told: list[tuple[str, object]] = []
    ready = Mock(has_entries=True, offset_entries=["o"], entries=["c"], answers=["a"])
    assert list[object](drain(shard_of(told, ready), Logs(told), NOW)) == ["a"]
    assert told == [("offsets", ["o"]), ("control", ["c"]), ("advance", ready)]


@pytest.mark.parametrize(("refuses", "left"), [("offsets", []), ("control", [("offsets", ["o"])])])
def test_nothing_is_answered_and_no_later_log_is_written_if_one_refuses(
    refuses: str, left: list[tuple[str, object]]
) -> None:
    told: list[tuple[str, object]] = []
    ready = Mock(has_entries=True, offset_entries=["o"], entries=["c"], answers=["a"])
    with pytest.raises(OSError, match=refuses):
        drain(shard_of(told, ready), Logs(told, refuses), NOW)
    assert told == left


def test_what_changes_nothing_is_answered_without_a_write() -> None:
    told: list[tuple[str, object]] = []
    ready = Mock(has_entries=False, answers=["a"])
    assert list[object](drain(shard_of(told, ready), Logs(told), NOW)) == ["a"]
    assert told == [("advance", ready)]
