"""The form of the pages: one subject each, short enough to be read, with a sentence on top."""

import re
from pathlib import Path

import pytest

from fairlead_tests.pages import BY_HAND, DOCS, HOUSE, PAGES, README, name_of

MOST_LINES = {
    "README.md": 165,
    "CONTRIBUTING.md": 120,
    "CHANGELOG.md": 60,
    "ARCHITECTURE.md": 200,
}
"""By page; those of `docs/` have at most 200, but for the reference."""


@pytest.mark.parametrize("page", [*MOST_LINES, *(name_of(each) for each in BY_HAND)])
def test_a_page_is_short(page: str) -> None:
    lines = (HOUSE / page).read_text().splitlines()
    assert len(lines) <= MOST_LINES.get(page, 200)


@pytest.mark.parametrize("page", [page for page in PAGES if page != README], ids=name_of)
def test_a_page_begins_with_its_title_and_what_it_has(page: Path) -> None:
    title, purpose, *_ = page.read_text().split("\n\n")
    assert re.fullmatch(r"# \S.*", title)
    assert purpose[0] not in "#|`*-["
    assert len(purpose) < 200


def test_every_page_is_in_readme_and_in_the_menu_of_the_site() -> None:
    menu = (HOUSE / "mkdocs.yml").read_text()
    readme = README.read_text()
    names = [name_of(page) for page in sorted(DOCS.rglob("*.md"))]
    assert [name for name in names if f": {name}\n" not in menu] == []
    builders = {"docs/extending/fairlead.md"}
    assert [name for name in names if f"({name})" not in readme] == sorted(builders)
