"""What the test run can be told: where the conformance data lies, and to retell the stories.

With `--hypothesis-profile=thorough` the properties are tried on many more examples.
"""

import pytest
from hypothesis import settings

settings.register_profile("brief", settings.default, max_examples=30)
settings.register_profile("thorough", settings.default, max_examples=1_000)
settings.load_profile("brief")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--conformance-dir",
        default="../shared/conformance",
        help="folder of reconciliation*.yaml and assignors*, relative to the repository's root",
    )
    parser.addoption(
        "--rewrite-stories", action="store_true", help="write what happens into the stories"
    )
