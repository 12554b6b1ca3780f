"""The name that pip knows fairlead by, and what to install where a part of it is missing."""

from typing import Final

DISTRIBUTION: Final = "fairlead-connect"
"""Not `fairlead`: on PyPI that name is the package of somebody else. One imports `fairlead`."""


def pip_install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
