"""What an assignor's error says of itself is told in one line, whatever it is."""

import pytest

from fairlead.runtime.node.assignors.user_code import describe


class UntoldError(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("a\n b"), "ValueError: a b"),
        (ValueError(), "ValueError"),
        (MemoryError(), "MemoryError: it used up what assignor.memory.max allows"),
        (MemoryError("of its own"), "MemoryError: of its own"),
        (UntoldError(), "UntoldError: (no message)"),
        (ValueError("\ud800"), "ValueError: \\ud800"),
    ],
)
def test_an_error_is_described_in_a_line(error: Exception, told: str) -> None:
    assert describe(error) == told


def test_an_error_that_was_raised_is_described_with_its_place() -> None:
    with pytest.raises(ValueError, match="x") as caught:
        raise ValueError("x")
    assert describe(caught.value).startswith("ValueError: x (test_described_errors.py, line ")
