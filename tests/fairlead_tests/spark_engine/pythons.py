"""Pythons of executors, with some packages of this one and without fairlead."""

import sys
import venv
from importlib.util import find_spec
from pathlib import Path

ARROW = ("pyspark", "py4j", "pyarrow", "numpy")
"""What the tasks of a job of Arrow need."""


def make_python(folder: Path, *packages: str) -> Path:
    """Make an environment that has these packages alone, and return its interpreter."""
    venv.create(folder, symlinks=True, with_pip=False)
    (there,) = folder.glob("lib/python*/site-packages")
    for each in packages:
        spec = find_spec(each)
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        for part in (package, package.with_name(f"{each}.libs")):
            if part.exists():
                (there / part.name).symlink_to(part)
    return folder / "bin" / Path(sys.executable).name


def make_python_with_other_arrow(folder: Path) -> Path:
    """Make one whose pyarrow is of another release."""
    python = make_python(folder, "pyspark", "py4j")
    (there,) = folder.glob("lib/python*/site-packages")
    (there / "pyarrow").mkdir()
    (there / "pyarrow" / "__init__.py").write_text("__version__ = '1.0.0'\n")
    return python
