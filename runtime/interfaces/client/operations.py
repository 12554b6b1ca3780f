"""The methods that both clients have: what each asks of a node, its client sends."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import update_wrapper
from inspect import Signature, signature
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from .calls import configs as of_configs
from .calls import connectors as of_connectors
from .calls import dead_letters as of_dead_letters
from .calls import groups as of_groups
from .calls import node as of_node
from .calls import offsets as of_offsets
from .calls import page as of_page
from .calls import waiting
from .calls import workers as of_workers
from .sending.exchange import NodeExchange
from .sending.requests import NodeRequest
from .sending.sessions import AsyncSession, SyncSession

P = ParamSpec("P")
T = TypeVar("T")


class ClientProcedure(Generic[P, T]):
    """A method with one result; its client waits for it, or awaits it."""

    def __init__(self, act: Callable[Concatenate[NodeExchange, P], Coroutine[Any, Any, T]]) -> None:
        """`act` gets the exchange of the client before the arguments of the method."""
        self._act = act
        self._like: Callable[..., object] = act
        """What the method is called and described as."""
        self._signature = _signature_behind_node(act)
        self.__doc__ = act.__doc__

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

        def call(*args: P.args, **named: P.kwargs) -> T | Coroutine[Any, Any, T]:
            return client.run(lambda node: self._act(node, *args, **named))

        vars(update_wrapper(call, self._like))["__signature__"] = self._signature
        return call


class ClientOperation(ClientProcedure[P, T]):
    """A method that is one request."""

    def __init__(self, make: Callable[P, NodeRequest[T]]) -> None:
        async def act(node: NodeExchange, /, *args: P.args, **named: P.kwargs) -> T:
            return await node.send(make(*args, **named))

        super().__init__(act)
        self.make = make
        """Makes the request."""
        self._like, self._signature, self.__doc__ = make, signature(make), make.__doc__


class ClientIterator(Generic[P, T]):
    """A method with an iterator as its result; it has begun when the method returns."""

    def __init__(
        self,
        begin: Callable[Concatenate[NodeExchange, P], Coroutine[Any, Any, AsyncGenerator[T]]],
    ) -> None:
        """`begin` gets the exchange of the client before the arguments of the method."""
        self._begin = begin
        self._signature = _signature_behind_node(begin)
        self.__doc__ = begin.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: SyncSession, owner: type) -> Callable[P, Generator[T]]: ...
    @overload
    def __get__(
        self, client: AsyncSession, owner: type
    ) -> Callable[P, Coroutine[Any, Any, AsyncGenerator[T]]]: ...

    def __get__(self, client: SyncSession | AsyncSession | None, owner: type) -> object:
        """Return the method of a client."""
        if client is None:
            return self

        def call(*args: P.args, **named: P.kwargs) -> object:
            return client.iterate(lambda node: self._begin(node, *args, **named))

        vars(update_wrapper(call, self._begin))["__signature__"] = self._signature
        return call


def _signature_behind_node(of_node: Callable[..., object]) -> Signature:
    """Return the signature of a function without the exchange, its first parameter."""
    whole = signature(of_node)
    return whole.replace(parameters=[*whole.parameters.values()][1:])


class Operations:
    """All that a node can be asked."""

    connectors = ClientOperation(of_connectors.list_connectors)
    expanded = ClientOperation(of_connectors.expand_connectors)
    connector = ClientOperation(of_connectors.get_connector)
    create = ClientOperation(of_connectors.create)
    delete = ClientOperation(of_connectors.delete)
    pause = ClientOperation(of_connectors.pause)
    resume = ClientOperation(of_connectors.resume)
    stop = ClientOperation(of_connectors.stop)
    restart = ClientOperation(of_connectors.restart)
    restart_task = ClientOperation(of_connectors.restart_task)
    status = ClientOperation(of_connectors.get_status)
    tasks = ClientOperation(of_connectors.list_tasks)
    task_status = ClientOperation(of_connectors.get_task_status)
    topics = ClientOperation(of_connectors.get_topics)
    reset_topics = ClientOperation(of_connectors.reset_topics)
    progress = ClientOperation(of_connectors.get_progress)
    last_hour = ClientOperation(of_connectors.get_last_hour)

    config = ClientOperation(of_configs.get_config)
    put_config = ClientOperation(of_configs.put_config)
    patch_config = ClientOperation(of_configs.patch_config)
    diff = ClientOperation(of_configs.diff_config)
    apply = ClientOperation(of_configs.apply)
    revisions = ClientOperation(of_configs.list_revisions)
    roll_back = ClientOperation(of_configs.roll_back)
    sample = ClientOperation(of_configs.read_sample)
    plugins = ClientOperation(of_configs.list_plugins)
    plugin_keys = ClientOperation(of_configs.list_plugin_keys)
    validate = ClientOperation(of_configs.validate)

    offsets = ClientOperation(of_offsets.get_offsets)
    set_offsets = ClientOperation(of_offsets.set_offsets)
    reset_offsets = ClientOperation(of_offsets.reset_offsets)
    seek = ClientOperation(of_offsets.seek)

    dead_letters = ClientOperation(of_dead_letters.list_dead_letters)
    all_dead_letters = ClientIterator(of_dead_letters.read_dead_letters)
    retry_dead_letters = ClientOperation(of_dead_letters.retry_dead_letters)
    export_dead_letters = ClientIterator(of_dead_letters.export_dead_letters)

    groups = ClientOperation(of_groups.list_groups)
    client_groups = ClientOperation(of_groups.list_client_groups)
    lag = ClientOperation(of_groups.get_lag)
    group = ClientOperation(of_groups.get_group)
    delete_group = ClientOperation(of_groups.delete_group)
    group_config = ClientOperation(of_groups.get_group_config)
    put_group_config = ClientOperation(of_groups.put_group_config)
    patch_group_config = ClientOperation(of_groups.patch_group_config)
    history = ClientOperation(of_groups.get_history)
    explain = ClientOperation(of_groups.explain)
    moves = ClientOperation(of_groups.list_moves)
    past_events = ClientOperation(of_groups.list_events)
    plan = ClientOperation(of_groups.plan)
    rebalance = ClientOperation(of_groups.rebalance)
    move_owner = ClientOperation(of_groups.move_owner)
    place = ClientOperation(of_groups.place)
    release = ClientOperation(of_groups.release)
    compact = ClientOperation(of_groups.compact)
    compaction = ClientOperation(of_groups.get_compaction)

    workers = ClientOperation(of_workers.list_workers)
    assignors = ClientOperation(of_workers.list_assignors)
    drain = ClientOperation(of_workers.drain)
    cordon = ClientOperation(of_workers.cordon)
    uncordon = ClientOperation(of_workers.uncordon)
    expect = ClientOperation(of_workers.expect)
    remove_worker = ClientOperation(of_workers.remove_worker)

    server = ClientOperation(of_node.get_server)
    overview = ClientOperation(of_node.get_overview)
    health = ClientOperation(of_node.get_health)
    liveness = ClientOperation(of_node.get_liveness)
    readiness = ClientOperation(of_node.get_readiness)
    settings = ClientOperation(of_node.list_settings)
    nodes = ClientOperation(of_node.list_nodes)
    whoami = ClientOperation(of_node.describe_caller)
    metrics = ClientOperation(of_node.get_metrics)
    loggers = ClientOperation(of_node.list_loggers)
    logger = ClientOperation(of_node.get_logger)
    set_log_level = ClientOperation(of_node.set_log_level)
    logs = ClientOperation(of_node.read_logs)
    follow_logs = ClientIterator(of_node.follow_logs)

    state = ClientOperation(of_page.get_state)
    changes = ClientIterator(of_page.follow_changes)
    events = ClientIterator(of_page.follow_events)

    wait = ClientProcedure(waiting.wait)
    wait_until_drained = ClientProcedure(waiting.wait_until_drained)
