"""How long a round that would revoke has to wait after others that did.

Connect's `ExponentialBackoff` with 1 ms to begin with, 40 as the multiplier and no jitter. The
last bit of a logarithm is not the same in Java: of ten thousand longest delays there may be one
whose wait is 1 ms another than there.
"""

import math

INITIAL_MS = 1
MULTIPLIER = 40


def backoff_ms(attempt: int, max_delay_ms: int) -> int:
    """Return how many milliseconds to wait at this attempt, the first being 1.

    The longest wait is come by through logarithms, as there: it may fall 1 ms short.
    """
    if max_delay_ms <= INITIAL_MS:
        return max_delay_ms
    longest = math.log(max_delay_ms / INITIAL_MS) / math.log(MULTIPLIER)
    return min(int(INITIAL_MS * math.pow(MULTIPLIER, min(attempt, longest))), max_delay_ms)
