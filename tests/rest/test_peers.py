"""Who asks: the kernel tells whose process is at the other end of a local connection."""

import getpass
import socket

import pytest

from fairlead.runtime.interfaces.rest.server.peers import principal_of


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_the_user_of_a_local_connection_is_named(family: socket.AddressFamily, host: str) -> None:
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    with listener, socket.create_connection(listener.getsockname()[:2]) as caller:
        served, address = listener.accept()
        with served:
            ends = address[:2], served.getsockname()[:2]
            assert principal_of(*ends) == f"rest {host} ({getpass.getuser()})"
            assert caller.getsockname()[1] == address[1]
            another = host, served.getsockname()[1] - 1  # its connection may have the same port
            assert principal_of(ends[0], another) == f"rest {host}"
            caller.close()  # the kernel lists what is left of it as root's
            assert principal_of(*ends) == f"rest {host}"


def test_who_is_elsewhere_or_gone_is_named_by_the_address() -> None:
    here = "127.0.0.1", 8083
    assert principal_of(("192.0.2.7", 4711), here) == "rest 192.0.2.7"
    assert principal_of(("127.0.0.1", 0), here) == "rest 127.0.0.1"
    assert principal_of(("testclient", 50_000), here) == "rest testclient"
    assert principal_of(("127.0.0.1", 4711), ("testserver", 80)) == "rest 127.0.0.1"
