"""The classic incremental assignor against rounds that Connect's own class went through."""

import json
from typing import Any

import pytest

from fairlead_tests.assignors.record_connect import RECORDED
from fairlead_tests.conformance.rounds import Workers, spell_increments

SCENARIOS = json.loads(RECORDED.read_text())["scenarios"]


@pytest.mark.parametrize("told", SCENARIOS, ids=[each["id"] for each in SCENARIOS])
def test_every_round_comes_to_what_the_real_class_made_of_it(told: dict[str, Any]) -> None:
    workers = Workers(told["initial"], told["max_delay_ms"])
    for number, each in enumerate(told["rounds"]):
        increments = workers.play(each)
        seen = workers.seen(increments)
        found = (
            {key: seen[key] for key in each["expect"]},
            spell_increments(increments),
        )
        assert found == (each["expect"], each["exact_sorted_worker_order"]), f"round {number}"
