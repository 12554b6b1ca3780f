"""The kinds of faults: how often each comes, and how long it lasts."""

from enum import Enum
from typing import Final


class Fault(Enum):
    """The kinds of faults, and of orders by operators."""

    LOSE = "messages are lost"
    DOUBLE = "messages arrive twice"
    DELAY = "messages are late"
    REPEAT = "messages of long ago arrive again"
    CUT = "a worker is cut off"
    CRASH = "a worker dies"
    FREEZE = "a worker freezes"
    LEAVE = "a worker leaves"
    STEP_AWAY = "a static worker leaves for a while"
    JOIN = "a worker comes"
    HANG = "the next stop hangs"
    KILL_GROUP = "the group's process dies"
    KILL_WRITING = "the group's process dies as it writes"
    FREEZE_GROUP = "the group's process freezes"
    BAD_ASSIGNOR = "the next assignment goes wrong"
    SLOW_ASSIGNOR = "the next assignment takes long"
    REASON = "a worker asks for a rebalance"
    EXODUS = "all workers leave, and the group is deleted"
    PUT = "a connector is created or changed"
    DELETE = "a connector is deleted"
    SPLIT = "a connector splits anew"
    CLOCK = "the wall clock jumps"
    CORDON = "a worker is cordoned or drained"
    UNCORDON = "a worker is uncordoned"
    EXPECT = "a worker is expected back"
    PLACE = "somebody says what a resource weighs, and where it may run"
    REBALANCE = "somebody wants a rebalance"
    REMOVE = "a worker is removed"
    CONFIGURE = "a setting of the group is changed, and taken back"
    PAUSE = "a connector is paused"
    STOP = "a connector is stopped"
    RESUME = "a connector is resumed"
    RESTART = "a connector or a task is restarted"
    FAIL = "a task fails"
    ALTER = "a connector is stopped, its offsets are set, and it is resumed"
    ROLL = "a worker is rolled to the other protocol"
    CONVERT = "all workers are rolled to one protocol"
    MIGRATION = "the migration policy is changed, and taken back"
    CRASH_HOST = "a host crashes"
    LOSE_DISK = "a host crashes, and its disk is lost"
    FREEZE_HOST = "a host freezes"
    CUT_STORE = "a host is cut off from the store"
    CUT_HOSTS = "a host is cut off from the other hosts"
    LATE_WRITE = "what a host sends to the store is late"
    LOSE_WORD = "a word of the store to a host is lost"
    LATE_ANSWER = "what a host sends to another host is late"
    MOVE = "the owner gives the group up"


WEIGHTS: Final = {
    Fault.LOSE: 12,
    Fault.DOUBLE: 8,
    Fault.DELAY: 24,
    Fault.REPEAT: 12,
    Fault.CUT: 4,
    Fault.CRASH: 7,
    Fault.FREEZE: 12,
    Fault.LEAVE: 4,
    Fault.STEP_AWAY: 4,
    Fault.JOIN: 7,
    Fault.HANG: 5,
    Fault.KILL_GROUP: 3,
    Fault.KILL_WRITING: 4,
    Fault.FREEZE_GROUP: 4,
    Fault.BAD_ASSIGNOR: 2,
    Fault.SLOW_ASSIGNOR: 3,
    Fault.REASON: 2,
    Fault.PUT: 3,
    Fault.DELETE: 2,
    Fault.SPLIT: 22,
    Fault.EXODUS: 1,
    Fault.CLOCK: 2,
    Fault.CORDON: 3,
    Fault.UNCORDON: 2,
    Fault.EXPECT: 1,
    Fault.PLACE: 2,
    Fault.REBALANCE: 1,
    Fault.REMOVE: 2,
    Fault.CONFIGURE: 5,
}
"""How often each kind comes, compared with the others."""

LIFECYCLE_WEIGHTS: Final = {
    Fault.PAUSE: 4,
    Fault.STOP: 5,
    Fault.RESUME: 8,
    Fault.RESTART: 7,
    Fault.FAIL: 4,
    Fault.ALTER: 7,
}
"""The same for what befalls connectors."""

CREW_WEIGHTS: Final = {Fault.ROLL: 6, Fault.CONVERT: 4, Fault.MIGRATION: 1}
"""The same for what befalls a crew that speaks both protocols."""

HOST_WEIGHTS: Final = {
    Fault.CRASH_HOST: 5,
    Fault.LOSE_DISK: 4,
    Fault.FREEZE_HOST: 7,
    Fault.CUT_STORE: 6,
    Fault.CUT_HOSTS: 5,
    Fault.LATE_WRITE: 5,
    Fault.LOSE_WORD: 5,
    Fault.LATE_ANSWER: 4,
    Fault.MOVE: 3,
}
"""The same for what befalls hosts and their store."""

SPANS_MS: Final[dict[Fault, tuple[int, ...]]] = {
    Fault.DOUBLE: (100, 2_000, 9_000),
    Fault.DELAY: (500, 2_000, 4_000, 9_000),
    Fault.REPEAT: (100, 1_000, 9_000),
    Fault.CUT: (1_000, 5_000, 15_000),
    Fault.CRASH: (100, 2_000, 15_000, 30_000),
    Fault.FREEZE: (500, 3_000, 8_000, 9_500, 12_000, 25_000),
    Fault.LEAVE: (1_000, 20_000),
    Fault.STEP_AWAY: (500, 5_000, 20_000),
    Fault.KILL_GROUP: (100, 4_000, 12_000),
    Fault.KILL_WRITING: (100, 4_000),
    Fault.FREEZE_GROUP: (500, 4_000, 15_000),
    Fault.SLOW_ASSIGNOR: (1_000, 5_000, 25_000),
    Fault.EXODUS: (10_000, 30_000),
    Fault.CLOCK: (1_000, 30_000, 600_000),
    Fault.EXPECT: (5_000, 60_000),
    Fault.CONFIGURE: (5_000, 30_000),
    Fault.ALTER: (4_000, 20_000),
    Fault.ROLL: (100, 2_000, 20_000),
    Fault.CONVERT: (1_000, 10_000, 30_000),
    Fault.MIGRATION: (5_000, 20_000),
    Fault.CRASH_HOST: (500, 4_000, 12_000),
    Fault.LOSE_DISK: (500, 4_000, 12_000),
    Fault.FREEZE_HOST: (1_000, 4_000, 6_000, 12_000),
    Fault.CUT_STORE: (1_000, 4_000, 9_000),
    Fault.CUT_HOSTS: (1_000, 5_000, 15_000),
    Fault.LATE_WRITE: (500, 4_000, 12_000),
    Fault.LATE_ANSWER: (500, 4_000, 12_000),
}
"""The longest that a fault lasts, one of these; what is not named here has no length."""
