"""Whole groups of members of both protocols under faults, each from a seed: what holds in all."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fairlead_tests.translation.outside_storm import OutsideStorm
from fairlead_tests.translation.storm import Storm

KINDS = pytest.mark.parametrize("kind", [Storm, OutsideStorm], ids=["own", "outside"])


@KINDS
@pytest.mark.parametrize("seed", range(4))
def test_a_mixed_group_holds_through_faults_and_comes_to_rest(
    kind: type[Storm], seed: int, tmp_path: Path
) -> None:
    storm = kind(seed, tmp_path)
    storm.run(150)
    storm.settle()
    storm.driver.close()


@pytest.mark.soak
@KINDS
def test_many_mixed_groups_hold_through_faults(kind: type[Storm]) -> None:
    for seed in range(1_000, 2_000):
        with TemporaryDirectory() as folder:
            storm = kind(seed, Path(folder))
            storm.run(400)
            storm.settle()
            storm.driver.close()
