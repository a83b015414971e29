"""Readers of environment variables that are URLs or host names. Malformed ones are rejected at the start."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from redis import ConnectionPool
from redis.exceptions import RedisError

from relaybatch.conf import env

EXPECTED_REDIS = "redis://host:port/number, rediss://host:port/number or unix:///path?db=number"
EXPECTED_ORIGIN = "an origin, http://host or https://host, with a port at most"
# `memory:` is missing: a store of one process is none for a deployment.
OBJECT_STORE_SCHEMES = frozenset({"s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https"})
EXPECTED_PAYLOAD_URL = "postgres:, file:///folder, or an object store such as s3://bucket/prefix"


def redis_url(name: str) -> str:
    """Return a required URL that the Redis client accepts with all its options."""
    url = env.secret(name)
    parts = _split_url(url)
    if parts is None or not _is_redis(parts) or not _is_accepted_by_client(url):
        raise env.invalid_variable(name, EXPECTED_REDIS)
    return url


def broker_url(redis_url: str) -> str:
    """Return the URL of the same Redis for Celery's transport, which has another form for a unix socket."""
    if not redis_url.startswith("unix://"):
        return redis_url
    return redis_url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=", 1)


def origin(name: str) -> str:
    """Return an origin without a trailing slash, empty when unset."""
    url = env.text(name)
    if url and not _is_origin(url):
        raise env.invalid_variable(name, EXPECTED_ORIGIN)
    return url.rstrip("/")


def origins(name: str) -> list[str]:
    listed = env.comma_separated(name)
    if not all(_is_origin(url) for url in listed):
        raise env.invalid_variable(name, "origins such as https://host, by commas")
    return listed


def host_names(name: str) -> list[str]:
    """Return host names as a `Host` header has them: an IPv6 address in brackets."""
    return [f"[{host}]" if _is_ipv6(host) else host for host in env.comma_separated(name)]


def payload_url(name: str) -> str:
    url = env.text(name)
    if url not in ("", "postgres:") and not _is_payload_store(url):
        raise env.invalid_variable(name, EXPECTED_PAYLOAD_URL)
    return url


def folder_from_url(url: str) -> Path | None:
    """Return the folder of a `file:` URL, which must be absolute and on this machine; None for any other URL."""
    parts = _split_url(url)
    if parts is None or parts.scheme != "file" or parts.query or parts.fragment:
        return None
    path = unquote(parts.path)
    is_absolute = parts.netloc in ("", "localhost") and path.startswith("/") and "\0" not in path
    return Path(path) if is_absolute and path != "/" else None


def _is_redis(parts: SplitResult) -> bool:
    if parts.scheme == "unix":
        return (
            not parts.hostname and len(parts.path) > 1 and re.fullmatch(r"(db=\d+)?", parts.query) is not None
        )
    # With a number in both places, the client would use one and Celery the other.
    return (
        parts.scheme in ("redis", "rediss")
        and bool(parts.hostname)
        and _is_database_number(parts.path)
        and "db" not in parse_qs(parts.query, keep_blank_values=True)
    )


def _is_database_number(path: str) -> bool:
    """Whether the path is a database number or empty. The client takes a word for database 0, Celery for an error."""
    return re.fullmatch(r"/?\d*", path, re.ASCII) is not None


def _is_accepted_by_client(url: str) -> bool:
    """Whether the Redis client can create its connection object from the URL. Nothing is connected."""
    try:
        ConnectionPool.from_url(url).make_connection()
    except (TypeError, ValueError, RedisError):
        return False
    return True


def _is_origin(url: str) -> bool:
    parts = _split_url(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return False
    return "@" not in parts.netloc and url.rstrip("/") == f"{parts.scheme}://{parts.netloc}"


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def _is_payload_store(url: str) -> bool:
    parts = _split_url(url)
    if parts is None:
        return False
    if parts.scheme == "file":
        return folder_from_url(url) is not None
    return parts.scheme in OBJECT_STORE_SCHEMES and bool(parts.hostname)


def _split_url(url: str) -> SplitResult | None:
    """Return None if a part is malformed (as a port of letters), or if there is white space in the URL."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return None if re.search(r"\s", url) else parts
