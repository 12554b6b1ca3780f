"""The case studies of the proposals, told step by step.

Each file is a transcript: commands, and behind each what it led to. Where a change of the
rules is meant to change a story, run `pytest --rewrite-stories` and read the diff.
"""

from pathlib import Path

import pytest

from fairlead_tests.story import Teller

STORIES = sorted(Path(__file__).parent.glob("stories/*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    written = path.read_text()
    told = retell(written)
    if request.config.getoption("--rewrite-stories"):
        path.write_text(told)
    assert told == path.read_text()


def retell(text: str) -> str:
    """Return the story with what really happens behind each command."""
    teller, told = Teller(), list[str]()
    for passage in text.strip().split("\n\n"):
        command, marker, _ = passage.partition("\n----")
        if not marker:
            told.append(passage + "\n")
            continue
        *remarks, line = command.splitlines()
        told.append("\n".join([*remarks, line, "----", teller.tell(line)]))
    return "\n".join(told)
