"""An assignor process gets the memory that it may take, and no more than its machine allows."""

import subprocess
import sys

import pytest

LIMITED = """
import resource, sys
from fairlead.runtime.assignors.limits import limit
born_with, asked = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_DATA, (born_with, born_with))
limit(asked)
print(*resource.getrlimit(resource.RLIMIT_DATA))
"""


@pytest.mark.parametrize(
    ("born_with", "asked", "gets"), [(512, 1024, 512), (1024, 512, 512), (-1, 512, 512)]
)
def test_the_lower_of_two_limits_holds(born_with: int, asked: int, gets: int) -> None:
    in_bytes = (str(max(-1, each << 20)) for each in (born_with, asked))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *in_bytes], check=True, capture_output=True, text=True
    )
    assert done.stdout == f"{gets << 20} {gets << 20}\n"


FILLED = """
from fairlead.runtime.assignors.limits import has_room, limit
limit(256 << 20)
told, hoard = [has_room(256 << 20)], []
try:
    while True:
        hoard.append(bytearray(1 << 20))
except MemoryError:
    told.append(has_room(256 << 20))
hoard.clear()
print(*told, has_room(256 << 20))
"""


def test_a_process_knows_whether_its_memory_is_full() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILLED], check=True, capture_output=True, text=True
    )
    assert done.stdout == "True False True\n"
