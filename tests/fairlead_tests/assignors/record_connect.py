"""Records rounds of Connect's real assignor, for tests on machines without it.

`PYTHONPATH=tests python -m fairlead_tests.assignors.record_connect` rewrites the file, which has
the format of the conformance data.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assignors.test_connect_peer import Watched

from fairlead_tests.assignors.connect_peer import NAME, ConnectPeer, connect_peer
from fairlead_tests.conformance.rounds import spell_increments

RECORDED = Path(__file__).with_name("assignors_connect.json")
SCENARIOS = 40
ROUNDS = 8
WORKERS = ("W3", "a-1", "north", "w1", "w10", "w2", "zz", "ü")
CONNECTORS = ("Gamma", "alpha", "c10", "c2", "é")
MISHAPS: list[dict[str, bool]] = [*[{}] * 8, {"delivered": False}, {"generation_mismatch": True}]
MAX_DELAYS_MS = (0, 1, 40, 1_000, 300_000)


def record(peer: ConnectPeer, seed: int) -> dict[str, Any]:
    """Return one scenario: its events, and the results of the peer."""
    dice = random.Random(seed)
    task_counts = {name: dice.randint(0, 12) for name in dice.sample(CONNECTORS, 2)}
    max_delay_ms = MAX_DELAYS_MS[seed % len(MAX_DELAYS_MS)]
    group = Watched(peer, dict(task_counts), max_delay_ms)
    rounds: list[dict[str, Any]] = []
    for _ in range(ROUNDS):
        events: list[dict[str, Any]] = []
        for event in _happening(group, dice):
            group.meet(event)
            events.append(event)
        mishap = dice.choice(MISHAPS)
        rounds.append({"events": events, **mishap, **_answer(group, mishap)})
    return {
        "id": f"connect-{seed:02}",
        "max_delay_ms": max_delay_ms,
        "initial": {"connectors": task_counts, "workers": ["w2"]},
        "rounds": rounds,
    }


def _answer(group: Watched, mishap: dict[str, bool]) -> dict[str, Any]:
    group.play(mishap)
    made = group.made
    assert made
    return {
        "expect": {
            "delay_ms": made.increments.delay_ms,
            "scheduled_in_ms": made.due_ms - group.now_ms if made.due_ms else 0,
            "return_candidates": sorted(made.candidates),
        },
        "exact_sorted_worker_order": spell_increments(made.increments),
    }


def _happening(group: Watched, dice: random.Random) -> Iterator[dict[str, Any]]:
    """Yield random events before a round that are possible there."""
    for _ in range(dice.choice((0, 1, 1, 2))):
        worker = dice.choice(WORKERS)
        is_there = worker in group.loads
        match dice.randrange(8):
            case 0 | 1 | 2 if not is_there:
                yield {"add_workers": [worker]}
            case 0 | 1 | 2 if len(group.loads) > 1:
                yield {"remove_workers": [worker]}
            case 3:
                yield {"set_task_count": {dice.choice(CONNECTORS): dice.randint(0, 12)}}
            case 4 if group.task_counts:
                yield {"delete_connector": dice.choice(sorted(group.task_counts))}
            case 5 if is_there:
                yield {"worker_claims": {worker: [f"{dice.choice(CONNECTORS)}-0"]}}
            case 6 if dice.random() < 0.3:
                yield {"new_leader_assignor": True}
            case _:
                due_ms = group.memory.wait.due_ms or group.now_ms + 40
                yield {"advance_clock_ms": max(0, due_ms - group.now_ms + dice.choice((-1, 0, 1)))}


def main() -> None:
    """Rewrite the file."""
    with TemporaryDirectory() as folder, connect_peer(Path(folder)) as peer:
        lines = [json.dumps(record(peer, seed)) for seed in range(SCENARIOS)]
    scenarios = ",\n".join(lines)
    RECORDED.write_text(f'{{"meta": "executed on {NAME}", "scenarios": [\n{scenarios}\n]}}\n')


if __name__ == "__main__":
    main()
