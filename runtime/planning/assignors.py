"""The assignors that plans can be computed with: fairlead's own.

Code of others runs in the assignor process alone, never beside the REST interface.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ...actors.assignors.built_in import BUILT_IN
from ...actors.planning.rehearsal import Assign

NO_CONF: Mapping[str, str] = MappingProxyType({})


def built_in_assignors(conf: Mapping[str, str] = NO_CONF) -> Mapping[str, Assign]:
    """Return what each of them computes with, by name, as these settings have it."""
    return {name: make(conf).assign for name, make in BUILT_IN.items()}
