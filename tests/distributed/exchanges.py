"""Arrays that two workers send each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed import Client


def exchange(client: Client) -> None:
    """Have two workers send each other arrays, and check what they compute from them."""

    def make(number: int) -> Any:
        import numpy as np

        import vkdispatch.numpy as vnp

        return vnp.arange(1 << 18, dtype=np.int32) + number

    def add(x: Any, y: Any) -> Any:
        return x + y

    first, second = sorted(client.scheduler_info(n_workers=-1)["workers"])
    places = [first, second] * 4
    made = [client.submit(make, number, workers=[place], pure=False) for number, place in enumerate(places)]
    sums = [
        client.submit(add, x, y, workers=[place], pure=False)
        for x, y, place in zip(made[:-1], made[1:], places, strict=False)
    ]
    total = client.submit(sum, sums, pure=False)
    # the client gets it through the scheduler, which passes it on
    expected = 14 * np.arange(1 << 18) + 49
    np.testing.assert_array_equal(total.result(timeout=120).numpy(), expected)
