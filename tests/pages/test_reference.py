"""The pages of `docs/reference` are what the code says; `--rewrite-samples` writes them again."""

import pytest
from pages.reference import REFERENCE_PAGES

from fairlead_tests.pages import REFERENCE


@pytest.mark.parametrize("name", REFERENCE_PAGES)
def test_a_page_of_the_reference_is_what_the_code_says(
    name: str, pytestconfig: pytest.Config
) -> None:
    page, written = REFERENCE / f"{name}.md", REFERENCE_PAGES[name]()
    if pytestconfig.getoption("--rewrite-samples"):
        page.write_text(written)
    assert page.read_text() == written, "pytest tests/pages --rewrite-samples writes it"


def test_no_page_of_the_reference_is_written_by_hand() -> None:
    assert {page.stem for page in REFERENCE.iterdir()} == {*REFERENCE_PAGES}
