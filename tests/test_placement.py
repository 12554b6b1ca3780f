"""What a connector's config says of where its work may run."""

import pytest

from fairlead.events.model import Resource
from fairlead.events.placement import ANYWHERE, Placement, flaw_in_labels, placement_in, work_in


def test_a_config_asks_what_its_keys_say() -> None:
    config = {
        "name": "A",
        "placement.weight": " 5 ",
        "placement.task.weights": "0:7, 3 : 1000",
        "placement.workers": "w2, w1,w2",
        "placement.tags": "gpu, ssd",
        "placement.zones": "a",
    }
    assert placement_in(config) == Placement(
        5, {0: 7, 3: 1000}, ("w1", "w2"), frozenset({"gpu", "ssd"}), frozenset({"a"})
    )


def test_a_task_weighs_what_is_said_of_it_and_else_what_the_connector_does() -> None:
    placement = placement_in({"placement.weight": "5", "placement.task.weights": "1:2"})
    weights = [placement.weight_of(Resource("A", task)) for task in (-1, 0, 1)]
    assert weights == [5, 5, 2]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("placement.weight", ""),
        ("placement.weight", "0"),
        ("placement.weight", "1001"),
        ("placement.weight", "1.5"),
        ("placement.weight", "9" * 5_000),
        ("placement.weight", "³"),
        ("placement.task.weights", "0:1,0:2"),
        ("placement.task.weights", "0"),
        ("placement.task.weights", "-1:2"),
        ("placement.task.weights", "0:1,"),
        ("placement.task.weights", "2147483648:1"),
        ("placement.workers", "w1,,w2"),
        ("placement.tags", "gpu,\0"),
        ("placement.tags", "g" * 65),
        ("placement.zones", " "),
        ("placement.unheard.of", "x"),
    ],
)
def test_a_value_that_is_no_good_counts_as_not_given(key: str, value: str) -> None:
    assert placement_in({"name": "A", key: value}) == ANYWHERE


def test_what_plugins_and_tasks_see_says_nothing_of_placement() -> None:
    config = {"name": "A", "placement.tags": "gpu", "placement.unheard.of": "x"}
    assert work_in(config) == {"name": "A", "placement.unheard.of": "x"}
    plain = {"name": "A"}
    assert work_in(plain) is plain


@pytest.mark.parametrize(
    ("labels", "flaw"),
    [
        (("gpu", "höher", "a b", "x" * 64), ""),
        (("gpu", ""), "an item is blank: there is a comma too many"),
        (("",), "it is blank"),
        (("a\n",), "'a\\n' is no label: at most 64 characters that can be printed, without commas"),
        (("a,b",), "'a,b' is no label: at most 64 characters that can be printed, without commas"),
    ],
)
def test_a_label_is_short_and_can_be_printed(labels: tuple[str, ...], flaw: str) -> None:
    assert flaw_in_labels(labels) == flaw
