"""The assignors that the coordinator runs itself, by the name that members give them."""

from collections.abc import Callable, Mapping

from ..messages.computing import Assignment, Snapshot
from . import range as ranges
from . import uniform

SERVER_ASSIGNORS: Mapping[str, Callable[[Snapshot], Assignment]] = {
    uniform.NAME: uniform.assign,
    ranges.NAME: ranges.assign,
}

BUILT_IN = uniform.NAME
"""Which one computes where no member can."""
