"""`python -m bench.stage_timing.worker -A relaybatch worker …`: Celery's command, with timers around the stages.

BENCH_STAGE_TOTALS is the file that the totals are written to.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django

from bench.stage_timing.stages import STAGES
from bench.stage_timing.timers import StageTimers


def main() -> None:
    import relaybatch.celery  # noqa: F401 -- before Django's set-up, as Celery loads it

    django.setup()
    import batches.tasks  # noqa: F401 -- imports what the timers replace

    timers = StageTimers()
    timers.install(STAGES)
    timers.write_for_ever(Path(os.environ["BENCH_STAGE_TOTALS"]))
    from celery.__main__ import main as celery

    sys.argv[0] = "celery"
    celery()


if __name__ == "__main__":
    main()
