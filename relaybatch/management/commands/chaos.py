"""`manage.py chaos`: harms a deployment of its own at random, and checks what is guaranteed (docs/guarantees.md)."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

from relaybatch.output import write_line
from relaybatch.quickstart.errors import QuickstartError
from relaybatch.quickstart.interruption import Interruption, Stopped

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(BaseCommand):
    help = (
        "Start a deployment with servers of its own, harm it for a while, and check that nothing was lost. "
        "Touches neither the configured database nor Redis; needs the packages of requirements-dev.txt."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--seconds", type=float, default=120.0)
        parser.add_argument(
            "--seed", type=int, help="what is done in which order; printed, random by default"
        )
        parser.add_argument("--json", action="store_true", help="one line on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            from relaybatch.chaos import report
            from relaybatch.chaos.run import run_chaos
        except ImportError as missing:
            raise CommandError(f"{missing}: chaos needs the packages of requirements-dev.txt") from missing
        seed = options["seed"] if options["seed"] is not None else random.randrange(1_000_000)  # noqa: S311
        interruption = Interruption()
        interruption.listen()
        try:
            told = run_chaos(seconds=options["seconds"], seed=seed, interruption=interruption)
        except QuickstartError as problem:
            raise CommandError(str(problem)) from problem
        except Stopped:
            sys.exit(130)
        write_line(self.stdout, report.as_json(told) if options["json"] else report.as_text(told))
        if told.findings.violations:
            sys.exit(1)
