"""The law is at home: every section that the code cites stands on a page of this repository."""

import re
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[1]
PAGES = {
    "PROTOCOL": "actors/PROTOCOL.md",
    "LOG": "events/LOG.md",
    "DATA_PLANE": "runtime/pipeline/DATA_PLANE.md",
}
"""The pages that are cited by section, by the name that citations use."""

NAMED = re.compile(r"\b([A-Z_]{3,})(?:\.md)? (§\d+(?:(?:,| and| to|, and) §\d+)*)")
ANY = re.compile(r"§(\d+)")
ROOMS = ("actors", "events", "projections", "runtime", "tests", "deploy")


def sections(page: str) -> list[str]:
    """Return the numbers of the sections that a page has, in its order."""
    return re.findall(r"^## §(\d+)", (HOUSE / PAGES[page]).read_text(), re.MULTILINE)


def sources() -> list[Path]:
    """Return the files whose citations count."""
    files = (path for room in ROOMS for path in (HOUSE / room).rglob("*.py"))
    return sorted(path for path in files if path != Path(__file__))


@pytest.mark.parametrize("page", PAGES)
def test_the_sections_of_a_page_are_numbered_one_after_the_other(page: str) -> None:
    found = sections(page)
    assert found == [str(number + 1) for number in range(len(found))]


@pytest.mark.parametrize("room", ROOMS)
def test_every_section_that_is_cited_exists(room: str) -> None:
    missing: list[str] = []
    for path in sources():
        if path.relative_to(HOUSE).parts[0] != room:
            continue
        text = path.read_text()
        for page, numbers in NAMED.findall(text):
            gone = set(ANY.findall(numbers)) - set(sections(page) if page in PAGES else ())
            missing += [f"{path.relative_to(HOUSE)}: {page} §{number}" for number in gone]
        bare = set(ANY.findall(NAMED.sub("", text))) - set(sections("PROTOCOL"))
        missing += [f"{path.relative_to(HOUSE)}: §{number}" for number in bare]
    assert missing == []


FILE = re.compile(r"`([\w./]+\.py)`")


def test_the_files_that_a_page_names_exist() -> None:
    files = {
        path.relative_to(HOUSE).as_posix()
        for room in ROOMS
        for path in (HOUSE / room).rglob("*.py")
    }
    pages = [*HOUSE.glob("*.md")]
    pages += [path for room in (*ROOMS, "docs") for path in (HOUSE / room).rglob("*.md")]
    missing = {
        f"{page.name}: {name}"
        for page in pages
        for name in FILE.findall(page.read_text())
        if not any(f"/{each}".endswith(f"/{name}") for each in files)
    }
    assert missing == set()


FOLDER = re.compile(r"`((?:actors|events|projections|runtime|tests|deploy|docs)/(?:[\w-]+/)*)`")


def test_the_folders_that_a_page_of_the_house_names_exist() -> None:
    pages = [*HOUSE.glob("*.md"), *(HOUSE / "docs").rglob("*.md")]
    missing = {
        f"{page.name}: {folder}"
        for page in pages
        for folder in FOLDER.findall(page.read_text())
        if not (HOUSE / folder).is_dir()
    }
    assert missing == set()


def test_every_room_of_the_second_level_is_in_the_architecture() -> None:
    page = (HOUSE / "ARCHITECTURE.md").read_text()
    rooms = {
        path.relative_to(HOUSE).as_posix()
        for top in ("actors", "runtime")
        for path in (HOUSE / top).iterdir()
        if (path / "__init__.py").exists()
    }
    assert {room for room in rooms if f"`{room}/`" not in page} == set()
