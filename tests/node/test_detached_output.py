"""What a detached node prints goes to a file that stays small, though the node has it open."""

from pathlib import Path

from fairlead.runtime.node.launcher.detached import LARGEST, OUTPUT, rotate_output


def test_a_file_that_is_large_is_put_aside_and_written_from_its_beginning(tmp_path: Path) -> None:
    rotate_output(tmp_path)
    assert [*tmp_path.iterdir()] == [], "a node with a terminal has none"
    with (tmp_path / OUTPUT).open("ab", buffering=0) as printed:
        printed.write(b"x" * LARGEST)
        rotate_output(tmp_path)
        assert [each.name for each in tmp_path.iterdir()] == [OUTPUT]
        printed.write(b"last")
        rotate_output(tmp_path)
        printed.write(b"next")
    assert (tmp_path / OUTPUT).read_bytes() == b"next"
    assert (tmp_path / f"{OUTPUT}.1").read_bytes() == b"x" * (LARGEST - 4) + b"last"
