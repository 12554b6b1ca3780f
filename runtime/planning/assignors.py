"""The assignors that a plan is computed with: fairlead's own here, those of others apart."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from ...actors.assignors.built_in.catalogue import BUILT_IN
from ...actors.planning.rehearsal import Understudy
from ..cluster.spec import AssignorSpec
from .understudies import Understudies

NO_CONF: Mapping[str, str] = MappingProxyType({})


def built_in_assignors(conf: Mapping[str, str] = NO_CONF) -> Mapping[str, Understudy]:
    """Return fairlead's own, by name, as these settings have them."""
    return {name: make(conf) for name, make in BUILT_IN.items()}


@contextmanager
def all_assignors(
    spec: AssignorSpec, log_file: Path, late_at: float
) -> Generator[Mapping[str, Understudy]]:
    """Give those of others too that a node's workers may use, for the length of one plan.

    They are ended when it is `late_at`, monotonic; what they print goes to `log_file`.
    """
    with Understudies(spec, log_file, late_at) as others:
        yield {**built_in_assignors(spec.conf), **others.cast()}
