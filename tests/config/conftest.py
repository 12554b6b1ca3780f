"""Loading a configuration from nothing but what a test says."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fairlead.runtime.config.load import load_config
from fairlead.runtime.config.sources import ConfigError

Refused = Callable[..., tuple[str, ...]]


@pytest.fixture
def refused() -> Refused:
    """Return what is wrong with a configuration."""

    def load(
        *overrides: str, file: Path | None = None, environ: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        with pytest.raises(ConfigError) as caught:
            load_config(file, environ or {}, overrides)
        return caught.value.problems

    return load
