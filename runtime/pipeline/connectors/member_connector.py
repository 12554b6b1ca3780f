"""The connector class whose work is run by members over Kafka's wire (PROTOCOL §20).

The node keeps its config, offsets and statuses, and runs nothing of it. Its own keys begin with
`member.`; the members that run it know what they mean. It demands a tag, which those members have.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NoReturn

from ....events.placement import TAGS
from ..spi.config import ConfigDef, ConfigInvalid, Validation
from ..spi.connector import Connector, Delivery, Pipeline
from ..spi.context import Context
from ..spi.keys.common import COMMON

_GROUPS: Final = frozenset({"Common", "Placement"})
_KEYS: Final = ConfigDef(
    tuple(each for each in COMMON.definitions if each.group in _GROUPS), ("member.",)
)
_UNTAGGED: Final = (
    "a connector of this class demands a tag that the members have which can run it: workers of the"
    " node cannot"
)


class MemberConnector(Connector):
    """Names the work of members in any language."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE
    full_name: ClassVar[str] = "fairlead.MemberConnector"

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions of the keys that the node knows."""
        return _KEYS

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Validation:
        """Check the keys that the node knows; there must be a tag."""
        checked = _KEYS.check(config)
        return checked if config.get(TAGS, "").strip() else checked.plus({TAGS: _UNTAGGED})

    def start(self, context: Context, config: Mapping[str, str]) -> None:
        """Refuse to run on a worker of the node."""
        del context
        _refuse(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return no tasks: it is not started."""
        del max_tasks
        return ()

    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> Pipeline:
        """Refuse to run, or to publish, on a worker of the node."""
        del context
        _refuse(task_config)


def _refuse(config: Mapping[str, str]) -> NoReturn:
    tags = config.get(TAGS, "") or "its tags"
    raise ConfigInvalid(
        f"MemberConnector is run by members over Kafka's wire that have {tags}, not by a worker of"
        " the node; what counts is kept: start such a member"
    )
