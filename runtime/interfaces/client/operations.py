"""The methods that both clients have: each makes requests, and its client sends them."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

from . import connectors as of_connectors
from . import groups as of_groups
from . import waiting
from .requests import NodeRequest, Steps
from .sessions import AsyncSession, SyncSession

P = ParamSpec("P")
T = TypeVar("T")


class ClientOperation(Generic[P, T]):
    """A method whose client waits for the answer, or awaits it."""

    def __init__(self, make: Callable[P, NodeRequest[T] | Steps[T]]) -> None:
        self.make = make
        """Makes the request, or the steps that lead to the answer."""
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncSession, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncSession, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: SyncSession | AsyncSession | None, owner: type) -> object:
        """Return the method of a client."""
        if client is None:
            return self

        @wraps(self.make)
        def call(*args: P.args, **named: P.kwargs) -> T | Coroutine[Any, Any, T]:
            return client.run(self.make(*args, **named))

        return call


class Operations:
    """All that a node can be asked with one answer."""

    connectors = ClientOperation(of_connectors.list_connectors)
    connector = ClientOperation(of_connectors.get_connector)
    create = ClientOperation(of_connectors.create)
    put_config = ClientOperation(of_connectors.put_config)
    patch_config = ClientOperation(of_connectors.patch_config)
    delete = ClientOperation(of_connectors.delete)
    pause = ClientOperation(of_connectors.pause)
    resume = ClientOperation(of_connectors.resume)
    stop = ClientOperation(of_connectors.stop)
    restart = ClientOperation(of_connectors.restart)
    restart_task = ClientOperation(of_connectors.restart_task)
    status = ClientOperation(of_connectors.get_status)
    progress = ClientOperation(of_connectors.get_progress)
    offsets = ClientOperation(of_connectors.get_offsets)
    set_offsets = ClientOperation(of_connectors.set_offsets)
    reset_offsets = ClientOperation(of_connectors.reset_offsets)
    seek = ClientOperation(of_connectors.seek)
    overview = ClientOperation(of_groups.get_overview)
    workers = ClientOperation(of_groups.list_workers)
    drain = ClientOperation(of_groups.drain)
    cordon = ClientOperation(of_groups.cordon)
    uncordon = ClientOperation(of_groups.uncordon)
    history = ClientOperation(of_groups.get_history)
    explain = ClientOperation(of_groups.explain)
    moves = ClientOperation(of_groups.list_moves)
    past_events = ClientOperation(of_groups.list_events)
    plan = ClientOperation(of_groups.plan)
    wait = ClientOperation(waiting.wait)
    wait_until_drained = ClientOperation(waiting.wait_until_drained)
