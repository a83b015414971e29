"""Start real servers for the whole run, and set the environment from which the settings are read.

This happens while the file is imported: before any test module, any other conftest and the settings.
(With `DJANGO_SETTINGS_MODULE` in pyproject.toml, pytest-django would read the settings even earlier.)
"""

import os
import signal

import django
import pytest

from tests.support.run.run_environment import RunEnvironment
from tests.support.servers.object_server import _object_server_of_the_run, object_server
from tests.support.upstream.upstream import upstream

__all__ = ["_object_server_of_the_run", "object_server", "upstream"]  # fixtures that any test may ask for

# In the background of a script, a run inherits an ignored SIGINT, and so would the processes that tests interrupt:
# `make` leaves it ignored. A handler is reset to the default in what is started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_run = RunEnvironment.prepare()
os.environ["DJANGO_SETTINGS_MODULE"] = "relaybatch.settings"
django.setup()

from tests.support.run.truncate_tables import use_fast_truncate  # noqa: E402 -- imports models

use_fast_truncate()


def pytest_configure(config: pytest.Config) -> None:
    """Unset DJANGO_SETTINGS_MODULE before workers of a parallel run inherit it."""
    # pytest-django would read the settings before this file has given each worker its own Redis database and payloads.
    if getattr(config.option, "numprocesses", None):
        del os.environ["DJANGO_SETTINGS_MODULE"]


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    _run.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Drain the publisher thread before the tables are truncated."""
    from batches.publishing.publish import drain_publisher

    drain_publisher()
