"""Opens the line to owners: a node may be set up without one, or have files that are no good now.

An owner needs no line. So a certificate that has expired, or was moved, keeps a node from sending
to others and from nothing else, and is tried again until it is there.
"""

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...cluster.kafka_security import NODES_UNSET, KafkaSecurity

if TYPE_CHECKING:
    from .line import OwnerLine

LOGGER = logging.getLogger(__name__)


class LineOpening:
    """Opens the line of this node, and says why there is none."""

    def __init__(self, security: KafkaSecurity | None, data_dir: Path) -> None:
        """`security` is None without a listener."""
        self._security, self._data_dir = security, data_dir
        self.flaw = "" if self.is_set else NODES_UNSET
        """Why there is no line; "" if nothing was in its way."""

    @property
    def is_set(self) -> bool:
        """Whether nodes know each other by certificates: without that none reaches another."""
        return self._security is not None and bool(self._security.nodes)

    def open(self) -> "OwnerLine | None":
        """Return the line; None if there is none, for a reason that is logged once."""
        if self._security is None or not self.is_set:
            return None
        # Libraries that a node alone need not have, or load.
        from ...config.references.resolving import ReferenceBroken, resolve  # noqa: PLC0415
        from ...security.followed_files import FileRefused  # noqa: PLC0415
        from .line import LineSecurity, OwnerLine  # noqa: PLC0415

        try:
            tls = resolve(self._security.tls, own=str(self._data_dir))
            security = LineSecurity.open(replace(self._security, tls=tls))
        except (FileRefused, ReferenceBroken, OSError) as error:
            if self.flaw != str(error):
                LOGGER.warning("this node cannot send to others, and tries again: %s", error)
            self.flaw = str(error)
            return None
        self.flaw = ""
        return OwnerLine(security)
