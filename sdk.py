"""All that a plugin is written with: a source, a sink, a transform, an assignor.

    from fairlead.sdk import FetchingSource, SourceType, text_key

A plugin is a class and an entry point, in a distribution of its own:

| entry-point group | a subclass of | which a config names in |
|---|---|---|
| `fairlead.sources` | `SourceType`; it makes a `Source` or a `FetchingSource` | `source.type` |
| `fairlead.sinks` | `SinkType`; it makes a `Sink` | `sink.type` |
| `fairlead.transforms` | `Transform` | `transforms.<name>.type` |
| `fairlead.assignors` | what `ConnectAssignor` describes | `group.local.assignors` |
| `fairlead.server_assignors` | a class with its `assign` | `group.remote.assignor` |
| `fairlead.connectors` | `Connector`, if it is no pipeline | `connector.class` |

The names of this module stay: what is renamed inside of fairlead keeps its name here, and what ends
is announced one release ahead. `fairlead.testing` runs a source and a sink as a task does, crashes
included. deploy/sqlite and deploy/together of the repository are whole examples.
"""

from .actors.assignors.sdk import (
    CONNECTOR,
    NOTHING,
    Abilities,
    Assignment,
    AssignorData,
    AssignorFactory,
    ConnectAssignor,
    Demand,
    Eligible,
    LossView,
    MemberAssignment,
    MemberView,
    Metadata,
    Needs,
    Resource,
    Resources,
    Snapshot,
    Worker,
    abilities,
    demand_of,
    eligible,
    nobody_meets,
    plain_metadata,
)
from .events.commits import Advance, CommitId, Document, Lag, Manifest, Part, identity
from .events.model import Token
from .runtime.pipeline.spi.config import (
    ConfigDef,
    ConfigInvalid,
    Definition,
    Importance,
    ParsedConfig,
    Width,
)
from .runtime.pipeline.spi.connector import Connector, Delivery, Promise
from .runtime.pipeline.spi.context import (
    AccessLimits,
    Context,
    ExternalAccess,
    ProbeResult,
    SourceColumns,
)
from .runtime.pipeline.spi.errors import (
    Away,
    BadInput,
    LostRange,
    NotReady,
    OffsetRefused,
    RowsRefused,
    SampleRefused,
    SchemaRefused,
    SinkAway,
    SinkBroken,
    SinkFull,
    SourceAway,
    Unreadable,
)
from .runtime.pipeline.spi.keys.kinds import (
    choice_key,
    flag_key,
    list_key,
    number_key,
    secret_key,
    task_key,
    text_key,
)
from .runtime.pipeline.spi.lineage import Dataset
from .runtime.pipeline.spi.offsets import (
    Offsets,
    PartitionOffset,
    Seek,
    SeekEnd,
    check_members,
    refuse_references,
    seek_from_the_beginning,
)
from .runtime.pipeline.spi.rows import Rejects
from .runtime.pipeline.spi.sink import Sink, TaskOwnership
from .runtime.pipeline.spi.source import BatchPlan, Fetched, FetchingSource, Limit, Source
from .runtime.pipeline.spi.transform import Transform
from .runtime.pipeline.spi.types import SinkType, SourceType, WrittenColumns

# Former names, which stay; so do those of methods (`spi.Renamed`).
Look = ProbeResult
Outside = ExternalAccess
Reach = AccessLimits
Tenure = TaskOwnership
refuse_deferred = refuse_references

__all__ = [  # noqa: RUF022  # by subject
    # What all of them have.
    "AccessLimits",
    "ConfigDef",
    "ConfigInvalid",
    "Connector",
    "Context",
    "Definition",
    "Delivery",
    "Document",
    "ExternalAccess",
    "Importance",
    "Outside",
    "ParsedConfig",
    "Promise",
    "ProbeResult",
    "Reach",
    "Resource",
    "Token",
    "Width",
    "choice_key",
    "flag_key",
    "list_key",
    "number_key",
    "secret_key",
    "task_key",
    "text_key",
    # A source.
    "Advance",
    "Away",
    "BadInput",
    "BatchPlan",
    "Dataset",
    "Fetched",
    "FetchingSource",
    "Lag",
    "Limit",
    "Look",
    "LostRange",
    "NotReady",
    "OffsetRefused",
    "Offsets",
    "PartitionOffset",
    "Rejects",
    "SampleRefused",
    "Seek",
    "SeekEnd",
    "Source",
    "SourceAway",
    "SourceColumns",
    "SourceType",
    "Unreadable",
    "check_members",
    "identity",
    "refuse_deferred",
    "refuse_references",
    "seek_from_the_beginning",
    # A sink.
    "CommitId",
    "Manifest",
    "Part",
    "RowsRefused",
    "SchemaRefused",
    "Sink",
    "SinkAway",
    "SinkBroken",
    "SinkFull",
    "SinkType",
    "TaskOwnership",
    "Tenure",
    "WrittenColumns",
    # A transform.
    "Transform",
    # An assignor.
    "CONNECTOR",
    "NOTHING",
    "Abilities",
    "Assignment",
    "AssignorData",
    "AssignorFactory",
    "ConnectAssignor",
    "Demand",
    "Eligible",
    "LossView",
    "MemberAssignment",
    "MemberView",
    "Metadata",
    "Needs",
    "Resources",
    "Snapshot",
    "Worker",
    "abilities",
    "demand_of",
    "eligible",
    "nobody_meets",
    "plain_metadata",
]
