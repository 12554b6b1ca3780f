"""How a worker's word about its capacity is read."""

import pytest

from fairlead.actors.assignors.capacity import COLD, WARM, is_warm


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
