"""An invalid configuration ends the process with one line and its exit code."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from relaybatch.conf.startup import APP_LOAD_ERROR, exit_on_bad_config


@pytest.mark.parametrize("exit_code", [1, APP_LOAD_ERROR])
def test_the_error_is_one_line_on_stderr(exit_code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, exit_on_bad_config(exit_code=exit_code):
        raise ImproperlyConfigured("PORT: expected\n  a whole number")
    assert ended.value.code == exit_code
    assert ended.value.__suppress_context__
    assert capsys.readouterr() == ("", "PORT: expected a whole number\n")


def test_other_exceptions_pass() -> None:
    with pytest.raises(KeyError), exit_on_bad_config():
        raise KeyError


def test_gunicorns_exit_code_is_the_one_that_it_does_not_restart_after() -> None:
    from gunicorn.arbiter import Arbiter

    assert Arbiter.APP_LOAD_ERROR == APP_LOAD_ERROR
