"""How a process ends that must not start: with one line on stderr that says what to set right, and no traceback."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured

from relaybatch.output import write_line

if TYPE_CHECKING:
    from collections.abc import Iterator

# Other codes of a web process would make gunicorn start it again and again (gunicorn.arbiter's APP_LOAD_ERROR).
APP_LOAD_ERROR = 4


@contextlib.contextmanager
def exit_on_bad_config(*, exit_code: int = 1) -> Iterator[None]:
    """A wrong variable within ends the process; it passes by `except Exception`, as of Celery's own start."""
    try:
        yield
    except ImproperlyConfigured as error:
        write_line(sys.stderr, " ".join(str(error).split()))  # before any logging
        raise SystemExit(exit_code) from None
