"""What an item costs: processor time of each process, PostgreSQL statements and Redis commands."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import redis
from django.conf import settings

from bench.figures import Figure
from bench.measurements import Statements, cpu_seconds, machine_cpu_seconds, redis_commands

if TYPE_CHECKING:
    from collections.abc import Mapping


class ItemCost:
    """Counts from its creation to `figures`. `pids`: lists of process ids by the name of what they do."""

    def __init__(self, pids: Mapping[str, list[int]]) -> None:
        self._pids = pids
        self._statements = Statements()
        self._redis = redis.Redis.from_url(settings.REDIS_URL)
        self._statements.begin()
        self._commands = redis_commands(self._redis)
        self._cpu = self._cpu_seconds()
        self._machine = machine_cpu_seconds()
        self._began, self._own = time.perf_counter(), time.process_time()

    def figures(self, items: int) -> list[Figure]:
        own, seconds = time.process_time() - self._own, time.perf_counter() - self._began
        used = {name: cpu - self._cpu[name] for name, cpu in self._cpu_seconds().items()}
        others = machine_cpu_seconds() - self._machine - sum(used.values()) - own
        counted, commands = self._statements.counts(), redis_commands(self._redis)
        self._redis.close()
        sent = {name: calls - self._commands.get(name, 0) for name, calls in commands.items()}
        return [
            _cpu_figure(used, items),
            _others_figure(others / seconds),
            *_statement_figures(counted, items),
            _command_figure(sent, items),
        ]

    def _cpu_seconds(self) -> dict[str, float]:
        return {name: sum(cpu_seconds(pid) for pid in pids) for name, pids in self._pids.items()}


def _cpu_figure(used: dict[str, float], items: int) -> Figure:
    per_item = {name: seconds * 1000 / items for name, seconds in used.items()}
    parts = ", ".join(f"{name} {milliseconds:.2f}" for name, milliseconds in per_item.items())
    return Figure(name="  processor time an item", value=sum(per_item.values()), unit="ms", note=parts)


def _others_figure(processors: float) -> Figure:
    note = f"of {os.cpu_count()}; with much of it, the rates say little"
    return Figure(name="  processors that others kept busy", value=processors, unit="", note=note)


def _statement_figures(counted: dict[str, tuple[int, float]], items: int) -> list[Figure]:
    if not counted:
        return []
    parts = ", ".join(
        f"{name} {calls / items:.2f} ({milliseconds / items:.2f} ms)"
        for name, (calls, milliseconds) in counted.items()
        if calls >= items / 100
    )
    calls = sum(calls for calls, _ in counted.values())
    return [Figure(name="  statements an item", value=calls / items, unit="", note=parts)]


def _command_figure(sent: dict[str, int], items: int) -> Figure:
    most = sorted(sent.items(), key=lambda pair: -pair[1])
    parts = ", ".join(f"{name} {calls / items:.2f}" for name, calls in most if calls >= items / 100)
    return Figure(name="  Redis commands an item", value=sum(sent.values()) / items, unit="", note=parts)
