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
