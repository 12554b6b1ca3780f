"""What the test run can be told: where the conformance data lies, and to retell the stories."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--conformance-dir",
        default="../shared/conformance",
        help="folder of reconciliation*.yaml and assignors*, relative to the repository's root",
    )
    parser.addoption(
        "--rewrite-stories", action="store_true", help="write what happens into the stories"
    )
