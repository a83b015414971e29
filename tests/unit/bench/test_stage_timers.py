import importlib
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bench.stage_timing.stages import NOTES, PUBLISHER_STAGES, STAGES, UPSTREAM_CALL
from bench.stage_timing.thread_times import cpu_seconds_by_kind
from bench.stage_timing.timers import StageTimers

SOURCE = """
import time

def inner():
    time.thread_time() and [time.thread_time() for _ in range(20_000)]

def outer():
    inner()

class Gate:
    def acquire(self):
        raise ValueError("denied")
"""


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "staged_product.py").write_text(SOURCE)
    (tmp_path / "staged_importer.py").write_text("from staged_product import inner\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("staged_importer")
    yield importlib.import_module("staged_product")
    for name in ("staged_product", "staged_importer"):
        del sys.modules[name]


def test_a_stage_does_not_contain_the_stages_that_it_calls(staged: Any) -> None:
    timers = StageTimers()
    timers.install({"inner": ("staged_product:inner",), "outer": ("staged_product:outer",)})
    began = time.thread_time()
    staged.outer()
    spent = time.thread_time() - began
    inner, outer = timers.totals()["inner"], timers.totals()["outer"]
    assert (inner[0], outer[0]) == (1, 1)
    assert inner[2] > outer[2]
    assert inner[2] + outer[2] <= spent


def test_a_function_is_timed_where_it_was_imported_by_name(staged: Any) -> None:
    timers = StageTimers()
    timers.install({"inner": ("staged_product:inner",)})
    importlib.import_module("staged_importer").inner()
    assert timers.totals()["inner"][0] == 1


def test_a_method_that_raises_is_timed_and_still_raises(staged: Any) -> None:
    timers = StageTimers()
    timers.install({"gate": ("staged_product:Gate.acquire",)})
    with pytest.raises(ValueError, match="denied"):
        staged.Gate().acquire()
    assert timers.totals()["gate"][0] == 1


def test_what_is_not_found_is_reported(staged: Any) -> None:
    timers = StageTimers()
    timers.install({"gone": ("staged_product:gone", "no_such_module:f", "staged_product:Gate.gone")})
    assert timers.missing == ["staged_product:gone", "no_such_module:f", "staged_product:Gate.gone"]


def test_processor_time_is_told_by_kind_of_thread() -> None:
    is_over = threading.Event()

    def work() -> None:
        while time.thread_time() < 0.1:
            pass
        is_over.wait(timeout=30)

    before = cpu_seconds_by_kind()
    thread = threading.Thread(target=work, name="publisher")
    thread.start()
    try:
        while (spent := cpu_seconds_by_kind()["publisher"]) < 0.08 and thread.is_alive():
            time.sleep(0.01)
    finally:
        is_over.set()
        thread.join()
    assert before["publisher"] == 0
    assert spent >= 0.08


@pytest.mark.parametrize("path", [path for paths in STAGES.values() for path in paths])
def test_each_stage_names_a_function_of_the_product(path: str) -> None:
    module, _, qualified = path.partition(":")
    found: object = importlib.import_module(module)
    for name in qualified.split("."):
        found = getattr(found, name)
    assert callable(found)


def test_what_is_said_of_stages_is_said_of_existing_ones() -> None:
    assert {*NOTES, *PUBLISHER_STAGES, UPSTREAM_CALL} <= set(STAGES)
