"""What runs at a member, and what is meant to: the sets behind its steps (PROTOCOL §4, §9)."""

from collections.abc import Iterable

from ...events.model import NOTHING, Resources


class Work:
    """Owned and target of one member; what must go goes before anything new begins."""

    def __init__(self) -> None:
        self.owned: Resources = NOTHING
        """From before its start begins until after its stop has completed."""
        self.target: Resources = NOTHING
        """What the group's latest assignment names."""
        self.log_offset = 0
        """The log's end that the latest answer rests on."""

    @property
    def must_release(self) -> bool:
        """Tell whether anything runs that is not meant to."""
        return not self.owned <= self.target

    def aim(self, target: Resources) -> Resources:
        """Take a new target; return what is to stop that was not told to before."""
        newly = (self.owned & self.target) - target
        self.target = target
        return newly

    def grant(self) -> Resources:
        """Own all of the target, and return what of it is to start."""
        grant = self.target - self.owned
        self.owned |= grant
        return grant

    def release(self, resources: Iterable[object]) -> bool:
        """Own these no more; tell whether any of them was."""
        gone = self.owned.intersection(resources)
        self.owned -= gone
        return bool(gone)
