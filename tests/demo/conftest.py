"""The real flights, installed once per machine."""

from pathlib import Path

import pytest

from fairlead.runtime.demo.flights import FlightsError, ensure_flights


@pytest.fixture(scope="session")
def archive() -> Path:
    try:
        return ensure_flights()
    except FlightsError as error:
        if "No matching distribution" in str(error):
            pytest.skip(f"no package index is reachable: {error}")
        raise
