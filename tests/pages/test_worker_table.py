"""The table of a Connect worker's keys is what the code says; `--rewrite-samples` writes it."""

import re

import pytest

from fairlead_tests.pages import DOCS
from fairlead_tests.plugins.worker_table import HEADS, worker_table


def test_the_page_has_all_keys_of_a_worker(pytestconfig: pytest.Config) -> None:
    page = DOCS / "connect-plugins.md"
    table = re.compile(rf"^{re.escape(HEADS)}(?:\|.*\n)*", re.MULTILINE)
    if pytestconfig.getoption("--rewrite-samples"):
        page.write_text(table.sub(lambda _: worker_table(), page.read_text()))
    assert table.findall(page.read_text()) == [worker_table()]
