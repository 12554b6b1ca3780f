"""The pages for users: README and `docs/`, and what stands in them."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fairlead_tests import TESTS

HOUSE = TESTS.parent
README = HOUSE / "README.md"
DOCS = HOUSE / "docs"
REFERENCE = DOCS / "reference"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
BY_HAND = [page for page in PAGES if REFERENCE not in page.parents]

_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    """A block of code: its language, "" for what a terminal shows, and its text."""

    language: str
    text: str


class Sample(NamedTuple):
    """A command as a page has it, and what it shows."""

    command: str
    shown: tuple[str, ...]


def name_of(page: Path) -> str:
    return page.relative_to(HOUSE).as_posix()


def blocks_in(page: Path) -> list[Block]:
    return [
        Block(language, textwrap.dedent(text))
        for _, language, text in _BLOCK.findall(page.read_text())
    ]


def codes_in(page: Path) -> list[str]:
    """Return what stands between backticks, in sentences and tables."""
    return _CODE.findall(_BLOCK.sub("", page.read_text()))


def first_cells_in(page: Path) -> list[str]:
    """Return the first cells of the rows of all tables."""
    return [line.split(" | ")[0] for line in page.read_text().splitlines() if line[:3] == "| `"]


def samples_in(page: Path) -> list[Sample]:
    """Return the commands of a page that are shown with a prompt, in their order."""
    found: list[Sample] = []
    for block in blocks_in(page):
        for part in (
            re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:] if not block.language else ()
        ):
            command, *lines = part.rstrip("\n").split("\n")
            found.append(Sample(without_remark(command), tuple(lines)))
    return found


def commands_in(page: Path) -> Iterator[str]:
    """Yield each command of a page: of a shell's script, behind a prompt, or in a sentence."""
    yield from (each.command for each in samples_in(page))
    for block in blocks_in(page):
        if block.language == "sh":
            script = re.sub(r"<<'(\w+)'\n.*?^\1$", "", block.text, flags=re.MULTILINE | re.DOTALL)
            yield from filter(None, map(without_remark, script.replace("\\\n", " ").splitlines()))
    for code in codes_in(page):
        if re.match(r"(fairlead|make|pip|pytest|curl) \S", code):
            yield code


def without_remark(command: str) -> str:
    return re.split(r"(?:^|\s+)# ", command)[0].strip()
