"""The client of an object store: its variables, how long it waits and tries again, and its errors."""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import from_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from obstore.store import ObjectStore, RetryConfig

    from batches.payloads.errors import PayloadError

# obstore's FileNotFoundError and the like are OSErrors; a ValueError is a range or an option that it does not take.
STORE_ERRORS = (BaseError, OSError, ValueError)
VARIABLES_OF = {
    **dict.fromkeys(("s3", "s3a"), "AWS"),
    "gs": "GOOGLE",
    **dict.fromkeys(("az", "adl", "azure", "abfs", "abfss"), "AZURE"),
}
# obstore's own would be 10 retries within 3 minutes: a request of a web process waits for as long.
RETRIES: RetryConfig = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=10),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=2), "base": 2},
}
CLIENT_OPTIONS = {"connect_timeout": "5s", "timeout": "30s"}
# Options that obstore reads from variables (`AWS_ALLOW_HTTP`) as long as it is given none at all.
OPTION_NAMES = (
    *("allow_http", "allow_invalid_certificates", "connect_timeout", "timeout", "pool_idle_timeout"),
    *("proxy_url", "proxy_ca_certificate", "proxy_excludes", "user_agent"),
)


def open_client(url: str) -> ObjectStore:
    """Open the store that the URL names, with the variables of its kind. Raises obstore's errors and ValueError."""
    kind = VARIABLES_OF.get(urlsplit(url).scheme)
    options: Any = CLIENT_OPTIONS | (_options_from_variables(kind) if kind else {})
    return from_url(url, client_options=options, retry_config=RETRIES)


@contextlib.contextmanager
def raised_as(kind: type[PayloadError], message: str) -> Iterator[None]:
    try:
        yield
    except STORE_ERRORS as error:
        raise kind(message) from error
    except BaseException as error:
        # obstore panics at some answers, as a removal of what nobody asked it to remove. No module exports the class,
        # and it is no Exception: it would end the thread.
        if type(error).__name__ != "PanicException":
            raise
        raise kind(message) from error


def _options_from_variables(kind: str) -> dict[str, str]:
    values = {name: os.environ.get(f"{kind}_{name.upper()}", "") for name in OPTION_NAMES}
    return {name: value for name, value in values.items() if value}
