"""The health check of the container: asks the node by its own socket whether it is alive."""

import http.client
import os
import socket
import sys

SECONDS = 5.0


def main() -> int:
    """Return the exit code: 0 if the node answers that it is alive."""
    folder = os.environ.get("FAIRLEAD_DATA_DIR", "/var/lib/fairlead")
    connection = http.client.HTTPConnection("localhost")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as reached:
            reached.settimeout(SECONDS)
            reached.connect(f"{folder}/run/rest.sock")
            connection.sock = reached
            connection.request("GET", "/health/live")
            status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        sys.stderr.write(f"the node does not answer: {error}\n")
        return 1
    return int(status != http.HTTPStatus.OK)


if __name__ == "__main__":
    sys.exit(main())
