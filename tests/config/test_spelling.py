"""A value is spelled as the text that is parsed to it."""

import pytest

from fairlead.actors.settings import Value, _boolean, spell
from fairlead.events.entries.group_keys import count_of_shards, name_shard
from fairlead.events.placement import LARGEST_TASK, task_weights_in


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("", ""),
        ("a,b", "a,b"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (1.5, "1.5"),
        ((), ""),
        (("a", "b"), "a,b"),
    ],
)
def test_a_value_is_spelled_as_it_stands_in_a_config(value: Value, text: str | None) -> None:
    assert spell(value) == text


@pytest.mark.parametrize(
    ("log_id", "count"),
    [(name_shard(3, 12), 12), ("connect", None), ("shard 0 of 0", None), ("0", None), ("", None)],
)
def test_the_id_of_a_shards_logs_says_of_how_many_it_is_one(log_id: str, count: int | None) -> None:
    assert count_of_shards(log_id) == count


@pytest.mark.parametrize(
    ("items", "weights"),
    [
        (["3:20", "0:1"], {3: 20, 0: 1}),
        ([f"{LARGEST_TASK}:2"], {LARGEST_TASK: 2}),
        ([f"{LARGEST_TASK + 1}:2"], None),
        (["3:20", "3:1"], None),
        (["3:0"], None),
        (["3"], None),
        ([":1"], None),
        ([], {}),
    ],
)
def test_weights_are_given_to_tasks_that_there_may_be_and_once_each(
    items: list[str], weights: dict[int, int] | None
) -> None:
    assert task_weights_in(items) == weights


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), (" FALSE ", False), ("yes", None), ("", None), ("1", None)]
)
def test_a_boolean_is_true_or_false_in_whatever_case_and_nothing_else(
    text: str, value: bool | None
) -> None:
    if value is not None:
        assert _boolean(text) is value
    else:
        with pytest.raises(ValueError, match="Expected value to be either true or false"):
            _boolean(text)
