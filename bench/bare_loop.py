"""The reference of throughput: as many threads as slots that only POST to the same upstream, with `requests`."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import requests

from bench.figures import require
from bench.workload import item_body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.deployment import UpstreamProcess


def bare_rate(upstream: UpstreamProcess, *, items: int, slots: int, delay_ms: int) -> float:
    """Requests per second."""
    upstream.stats(reset=True)
    numbers = iter(range(items))
    lock = threading.Lock()
    threads = [
        threading.Thread(target=_post_all, args=(upstream.url, numbers, lock, delay_ms)) for _ in range(slots)
    ]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    require(upstream.stats()["requests"] == items, "the reference lost requests")
    return items / seconds


def _post_all(url: str, numbers: Iterator[int], lock: threading.Lock, delay_ms: int) -> None:
    with requests.Session() as session:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            session.post(
                f"{url}/v1/chat/completions",
                data=item_body(number, delay_ms=delay_ms),
                headers={"Idempotency-Key": str(number)},
                timeout=30,
            )
