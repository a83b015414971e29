"""Twenty thousand items of two owners, each asking for an echo of its own text, at upstreams that misbehave."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from batches.results.result_rows import ResultFilter
from batches.results.results import iter_results
from routing.models import Binding, Host, HostKey, Model, PolicyHostKey
from routing.secrets.encryption import encrypt
from tests.support.rows.catalog import make_caller
from tests.support.rows.gate_state import clear_gate
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import wait_until
from tests.support.upstream.odd_responses import BAD, GOOD, WELL, prompt_in
from tests.support.upstream.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import SimpleNamespace

    from batches.models import Batch
    from tests.support.servers.deployment import Deployment
    from tests.support.upstream.upstream import Answer, Request

pytestmark = pytest.mark.django_db(transaction=True)

# Many: one that was out of step has a connection for each request from then on, and proves nothing more.
UPSTREAMS = 40
ITEMS_AN_OWNER = 10_000
ITEMS_A_BATCH = 500
DEADLINE_SECONDS = 1200.0


def test_nobody_reads_an_answer_to_somebody_elses_request(
    deployment: Deployment, catalog: SimpleNamespace, upstreams: list[Upstream], ways: Counter[str]
) -> None:
    owners = (catalog, make_caller(catalog))
    batches: dict[str, Batch] = {}
    for number in range(0, ITEMS_AN_OWNER, ITEMS_A_BATCH):
        for owner in owners:
            name = f"{owner.relay_key.id}-{number}"
            bodies = [chat_body(f"{name}-{idx}", f"odd-{idx % UPSTREAMS}") for idx in range(ITEMS_A_BATCH)]
            batches[name] = submit(owner, *bodies, max_attempts=10, on_rate_limit="wait")
    worker = deployment.worker()
    deployment.sweeper()
    with breakers_that_close_at_once():
        wait_until(
            lambda: all(has_ended(batch) for batch in batches.values()), worker.log, seconds=DEADLINE_SECONDS
        )

    echoed = {text: back for name, batch in batches.items() for text, back in echoes(name, batch)}
    assert {text: back for text, back in echoed.items() if back not in ("", text)} == {}
    assert sum(bool(back) for back in echoed.values()) > 18_000
    assert set(ways) == {*GOOD, *BAD, "well"}, "each way was taken"
    assert len(echoed) == 20_000
    assert sum(len(upstream.requests) for upstream in upstreams) >= 20_000


@pytest.fixture
def ways() -> Counter[str]:
    return Counter()


@pytest.fixture
def upstreams(catalog: SimpleNamespace, ways: Counter[str]) -> Iterator[list[Upstream]]:
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(Upstream()) for _ in range(UPSTREAMS)]
        for number, upstream in enumerate(running):
            upstream.handler = misbehaving(random.Random(number), ways)
            add_model(catalog, f"odd-{number}", upstream.url, number)
        yield running


def misbehaving(chance: random.Random, ways: Counter[str]) -> Callable[[Request], Answer]:
    answers = {"well": WELL, **GOOD, **BAD}
    weights = {
        name: 60.0 if name == "well" else 25 / len(GOOD) if name in GOOD else 15 / len(BAD)
        for name in answers
    }

    def answer(_: Request) -> Answer:
        (name,) = chance.choices(list(weights), list(weights.values()))
        ways[name] += 1
        return answers[name]

    return answer


def add_model(catalog: SimpleNamespace, name: str, url: str, number: int) -> None:
    host = Host.objects.create(name=f"host-{name}", base_url=url)
    key = HostKey.objects.create(name=f"key-{name}", host=host, secret_encrypted=encrypt(name.encode()))
    PolicyHostKey.objects.create(policy=catalog.policy, host_key=key, position=100 + number)
    model = Model.objects.create(name=name, provider=catalog.provider)
    Binding.objects.create(model=model, host=host, adapter="openai", pricing=catalog.pricing)


@contextlib.contextmanager
def breakers_that_close_at_once() -> Iterator[None]:
    """Otherwise the breakers of misbehaving upstreams would be open most of the time."""
    over = threading.Event()

    def close_them() -> None:
        while not over.wait(0.1):
            clear_gate()

    thread = threading.Thread(target=close_them)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def has_ended(batch: Batch) -> bool:
    if batch.ended_at is None:
        batch.refresh_from_db(fields=["ended_at"])
    return batch.ended_at is not None


def echoes(name: str, batch: Batch) -> Iterator[tuple[str, str]]:
    """Each item's text, and the text of its response."""
    for page in iter_results(batch.id, ResultFilter()):
        for result in page:
            yield f"{name}-{result.row.idx}", prompt_in(result.response) if result.response else ""
