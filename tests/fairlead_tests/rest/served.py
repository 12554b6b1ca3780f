"""The real server of REST in a thread of the test, over any listeners."""

import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from fairlead.runtime.interfaces.rest.server.connections import Encryption
from fairlead.runtime.interfaces.rest.server.listeners import (
    OpenListener,
    RestServer,
    listen_apart,
    parse,
)
from fairlead.runtime.security.rest_listeners import RestListener

WAIT = 60.0


@contextmanager
def serving(
    app: ASGIApp,
    opened: Sequence[OpenListener],
    encryption: Encryption | None = None,
) -> Generator[list[RestListener]]:
    """Serve an application, and yield where."""
    config = uvicorn.Config(app, http="h11", log_config=None, ws="none")
    server = RestServer(config, opened, encryption or Encryption())
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield [each.listener for each in opened]
    finally:
        server.handle_exit(signal.SIGTERM, None)
        thread.join(WAIT)
        assert not thread.is_alive()


def opened_at(*urls: str, admin: Sequence[str] | None = None) -> list[OpenListener]:
    """Open listeners by their URLs."""
    own = None if admin is None else [parse(each) for each in admin]
    return listen_apart([parse(each) for each in urls], own)
