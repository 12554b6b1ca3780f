"""The fixture of these tests."""

import sys
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from pathlib import Path

import pytest

from fairlead_tests.local_assignors.packages import install

Installs = Callable[..., None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installs]:
    """Installs distributions for the length of a test; see `packages.install`."""
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def do(source: str, *points: str, dist: str = "shop", module: str = "shop_rules") -> None:
        install(tmp_path, source, *points, dist=dist, module=module)
        invalidate_caches()

    yield do
    for name in set(sys.modules) - before:
        if name.startswith("shop"):
            del sys.modules[name]
