"""`manage.py sweeper`: publishes what is due or lost, reclaims items of lost workers, expires, removes."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand

from batches.sweeper.loop import Sweeper
from relaybatch.stop_signal import EXIT_MARGIN_SECONDS, exit_after


class Command(BaseCommand):
    help = "Run the sweeper until SIGTERM. Any number may run; one works at a time."

    def handle(self, *args: Any, **options: Any) -> None:
        sweeper = Sweeper()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: sweeper.stop())
        exit_after(sweeper.stop_requested, seconds=EXIT_MARGIN_SECONDS)
        sweeper.run()
