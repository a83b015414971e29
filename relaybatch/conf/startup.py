"""Exit with one line on stderr, and no traceback, when the configuration is invalid."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured

from relaybatch.output import write_line

if TYPE_CHECKING:
    from collections.abc import Iterator

# gunicorn.arbiter's exit code for it. With any other code of a worker, gunicorn restarts the worker again and again.
APP_LOAD_ERROR = 4


@contextlib.contextmanager
def exit_on_bad_config(*, exit_code: int = 1) -> Iterator[None]:
    """Exit when the block raises ImproperlyConfigured.

    SystemExit passes through the `except Exception` of Celery's own start.
    """
    try:
        yield
    except ImproperlyConfigured as error:
        write_line(sys.stderr, " ".join(str(error).split()))  # logging is not configured yet
        raise SystemExit(exit_code) from None
