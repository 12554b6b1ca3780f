"""How far epochs count, and what is told of a group long before that matters.

Group, assignment, member and grant epochs are int64 in the log and in all messages here. Kafka's
own protocols have int32 for them: a group that has come that far is out of their clients' reach.
"""

from typing import Final

LARGEST_EPOCH: Final = (1 << 63) - 1
"""The last epoch that a log holds."""

LARGEST_OF_KAFKA: Final = (1 << 31) - 1
"""The last epoch that Kafka's own protocols can say."""

MANY_EPOCHS: Final = 1 << 30
"""From this epoch on people are told: half of what Kafka's protocols count is used up."""

ANOTHER_GROUP: Final = "create its connectors anew in a group of another name"
"""The way out: epochs never go back, not even when a group is deleted."""


def epoch_warning(group_epoch: int) -> str:
    """Return what people should know of a group that has counted so far, or nothing."""
    if group_epoch < MANY_EPOCHS:
        return ""
    left = LARGEST_EPOCH - group_epoch
    if left < MANY_EPOCHS:
        return f"group epoch {group_epoch}: the log holds {left} more; {ANOTHER_GROUP} before that"
    if group_epoch <= LARGEST_OF_KAFKA:
        left = LARGEST_OF_KAFKA - group_epoch
        return (
            f"group epoch {group_epoch}: clients of Kafka's own protocols can follow for {left}"
            f" more epochs, fairlead's workers for ever; to keep other clients, {ANOTHER_GROUP}"
        )
    return (
        f"group epoch {group_epoch}: fairlead's workers go on, clients of Kafka's own protocols"
        f" count to {LARGEST_OF_KAFKA} only; to serve other clients, {ANOTHER_GROUP}"
    )
