"""Time functions by stage without changing their source: each reference to them is replaced by a timing one."""

from __future__ import annotations

import functools
import importlib
import json
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from bench.stage_timing.thread_times import cpu_seconds_by_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

WRITE_INTERVAL_SECONDS = 0.25


class StageTimers:
    """Times of stages, each without the stages called from it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: dict[str, list[float]] = {}
        self._local = threading.local()
        self.missing: list[str] = []

    def install(self, stages: Mapping[str, tuple[str, ...]]) -> None:
        """Replace the functions, given as `module:name` or `module:Class.name`. Those not found are in `missing`."""
        for stage, paths in stages.items():
            self._totals[stage] = [0, 0.0, 0.0]
            for path in paths:
                if not self._replace(stage, path):
                    self.missing.append(path)

    def totals(self) -> dict[str, list[float]]:
        """`{stage: [calls, wall seconds, processor seconds]}`, of the calls that have returned."""
        with self._lock:
            return {stage: list(values) for stage, values in self._totals.items()}

    def write_for_ever(self, path: Path) -> None:
        """Write the totals to the file again and again, as JSON, in a thread."""
        threading.Thread(target=self._write_for_ever, args=(path,), name="stage-totals", daemon=True).start()

    def _write_for_ever(self, path: Path) -> None:
        partial = path.with_suffix(".partial")
        while True:
            document = {"stages": self.totals(), "threads": cpu_seconds_by_kind(), "missing": self.missing}
            partial.write_text(json.dumps(document))
            partial.rename(path)
            time.sleep(WRITE_INTERVAL_SECONDS)

    def _replace(self, stage: str, path: str) -> bool:
        module_name, _, qualified = path.partition(":")
        try:
            owner: Any = importlib.import_module(module_name)
            *parents, name = qualified.split(".")
            for parent in parents:
                owner = getattr(owner, parent)
            original = getattr(owner, name)
        except (ImportError, AttributeError):
            return False
        timed = self._timed(stage, original)
        setattr(owner, name, timed)
        if not parents:
            _replace_imported(original, timed)
        return True

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            nested = self._nested()
            nested.append([0.0, 0.0])
            wall, cpu = time.perf_counter(), time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                spent = (time.perf_counter() - wall, time.thread_time() - cpu)
                self._add(stage, spent, inner=nested.pop())
                if nested:
                    nested[-1][0] += spent[0]
                    nested[-1][1] += spent[1]

        return timed

    def _nested(self) -> list[list[float]]:
        """Wall and processor time of the timed calls within each open one of this thread."""
        if not hasattr(self._local, "nested"):
            self._local.nested = []
        nested: list[list[float]] = self._local.nested
        return nested

    def _add(self, stage: str, spent: tuple[float, float], *, inner: list[float]) -> None:
        with self._lock:
            totals = self._totals[stage]
            totals[0] += 1
            totals[1] += spent[0] - inner[0]
            totals[2] += spent[1] - inner[1]


def _replace_imported(original: object, timed: object) -> None:
    """Replace it in every module that imported it by name."""
    for module in list(sys.modules.values()):
        names = [name for name, value in list(vars(module).items()) if value is original]
        for name in names:
            setattr(module, name, timed)
