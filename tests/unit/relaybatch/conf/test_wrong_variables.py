"""An invalid variable stops the start: the error names it and what is expected, without its value."""

from __future__ import annotations

import base64
import runpy
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from relaybatch.conf.url_settings import broker_url
from tests.support.servers.deployment import ROOT

if TYPE_CHECKING:
    from pathlib import Path

REDIS = "REDIS_URL: expected redis://host:port/number, rediss://host:port/number or unix:///path?db=number"
DATABASE = "DATABASE_URL: expected postgresql://user:password@host:port/name (or ?host=/socket/folder)"
DATABASE_OPTIONS = "DATABASE_URL: expected libpq's options after the ?, each with a value of its kind"
CURRENCY = "RELAY_CURRENCY: expected a currency's three capital letters, as USD"
ORIGIN = "PUBLIC_URL: expected an origin, http://host or https://host, with a port at most"
ORIGINS = "CSRF_TRUSTED_ORIGINS: expected origins such as https://host, by commas"
PAYLOADS = "RELAY_BATCH_PAYLOAD_URL: expected postgres:, file:///folder, or an object store such as s3://bucket/prefix"
MASTER_KEY = "RELAY_MASTER_KEY: expected 32 bytes in base64, or several by commas"
KEY = base64.b64encode(b"\xff" * 32).decode()
WINDOW = "RELAY_BATCH_WINDOW: expected a whole number from 1 to 100000, or auto"


CERTIFICATES = "expected the path of a file of certificates in PEM form, or of a folder of such files"
FOLDERS = "SSL_CERT_DIR: expected the path of a folder, or several with : between them"


def settings_with(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> dict[str, Any]:
    """Load the settings file again."""
    monkeypatch.setenv(name, value)
    return runpy.run_path(str(ROOT / "relaybatch" / "settings.py"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("REDIS_URL=", REDIS),
        ("REDIS_URL=foo", REDIS),
        ("REDIS_URL=localhost:6379", REDIS),
        ("REDIS_URL=http://localhost:6379/0", REDIS),
        ("REDIS_URL=redis://localhost:port/0", REDIS),
        ("REDIS_URL=redis://localhost:6379/name", REDIS),
        ("REDIS_URL=redis://local host/0", REDIS),
        ("REDIS_URL=redis://localhost/0?socket_timeout=long", REDIS),
        ("REDIS_URL=redis://localhost/0?nonsense=1", REDIS),
        ("REDIS_URL=rediss://localhost/0?ssl_cert_reqs=nonsense", REDIS),
        ("REDIS_URL=redis://localhost/1?db=3", REDIS),
        ("RELAY_BATCH_MAX_ITEMS=5_000", "RELAY_BATCH_MAX_ITEMS: expected a whole number from 1 to 1000000"),
        ("REDIS_URL=unix://", REDIS),
        ("REDIS_URL=unix://run/redis.sock", REDIS),
        ("DATABASE_URL=foo", DATABASE),
        ("DATABASE_URL=mysql://localhost/name", DATABASE),
        ("DATABASE_URL=postgresql:name", DATABASE),
        ("DATABASE_URL=postgresql://localhost", DATABASE),
        ("DATABASE_URL=postgresql://localhost:port/name", DATABASE),
        ("DATABASE_URL=postgresql://localhost/name?nonsense=1", DATABASE),
        ("DATABASE_URL=postgresql://localhost/name?sslmode", DATABASE),
        ("DATABASE_URL=postgresql://localhost:0/name", DATABASE),
        ("DATABASE_URL=postgresql://localhost:65536/name", DATABASE),
        ("DATABASE_URL=postgresql://a:1,b:port/name", DATABASE),
        ("DATABASE_URL=postgresql://localhost/name?port=5x", DATABASE),
        ("DATABASE_URL=postgresql://localhost/name?port=5_0", DATABASE),
        ("DATABASE_URL=postgresql://localhost:\u0665/name", DATABASE),
        ("DATABASE_URL=postgresql://[::1/name", DATABASE),
        ("DATABASE_URL=postgresql://%2Ffolder", DATABASE),
        ("DATABASE_URL=postgresql://localhost/na%00me", DATABASE),
        (f"DATABASE_URL=postgresql://localhost/{'n' * 64}", DATABASE),
        ("DATABASE_URL=postgresql://a,b,c/name?port=1,2", DATABASE_OPTIONS),
        ("DATABASE_URL=postgresql://localhost/name?sslmode=nonsense", DATABASE_OPTIONS),
        ("DATABASE_URL=postgresql://localhost/name?target_session_attrs=nonsense", DATABASE_OPTIONS),
        ("DATABASE_URL=postgresql://localhost/name?connect_timeout=long", DATABASE_OPTIONS),
        ("DATABASE_URL=postgresql://localhost/name?keepalives_idle=long", DATABASE_OPTIONS),
        ("DATABASE_URL=postgresql://localhost/name?service=nonsense", DATABASE_OPTIONS),
        ("RELAY_CURRENCY=dollars", CURRENCY),
        ("RELAY_CURRENCY=usd", CURRENCY),
        ("PUBLIC_URL=foo", ORIGIN),
        ("PUBLIC_URL=ftp://host", ORIGIN),
        ("PUBLIC_URL=https://", ORIGIN),
        ("PUBLIC_URL=https://host:port", ORIGIN),
        ("PUBLIC_URL=https://host/path", ORIGIN),
        ("PUBLIC_URL=https://me@host", ORIGIN),
        ("PUBLIC_URL=https://host?x=1", ORIGIN),
        ("CSRF_TRUSTED_ORIGINS=https://a.example,b.example", ORIGINS),
        ("RELAY_BATCH_PAYLOAD_URL=nonsense", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=postgres://host/name", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=ftp://host/folder", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=s3:", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=s3:bucket", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=memory:", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=memory:///", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file://host/folder", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file://localhost:80/folder", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file:folder", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file://folder", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file:./folder", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file:", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file:///", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file:///folder?x=1", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file:///folder#x", PAYLOADS),
        ("RELAY_BATCH_PAYLOAD_URL=file:///fol%00der", PAYLOADS),
        ("RELAY_MASTER_KEY=nonsense", MASTER_KEY),
        (f"RELAY_MASTER_KEY={KEY},nonsense", MASTER_KEY),
        ("REQUESTS_CA_BUNDLE=/nowhere/ca.pem", f"REQUESTS_CA_BUNDLE: {CERTIFICATES}"),
        ("REQUESTS_CA_BUNDLE=/dev/null", f"REQUESTS_CA_BUNDLE: {CERTIFICATES}"),
        (f"REQUESTS_CA_BUNDLE={ROOT / 'README.md'}", f"REQUESTS_CA_BUNDLE: {CERTIFICATES}"),
        (f"CURL_CA_BUNDLE={ROOT / 'docs'}", f"CURL_CA_BUNDLE: {CERTIFICATES}"),
        ("SSL_CERT_FILE=/nowhere/ca.pem", f"SSL_CERT_FILE: {CERTIFICATES}"),
        ("SSL_CERT_DIR=/nowhere", FOLDERS),
        ("SSL_CERT_DIR=/nowhere:/dev/null", FOLDERS),
        ("RELAY_BATCH_WINDOW=often", WINDOW),
        ("RELAY_BATCH_WINDOW=0", WINDOW),
    ],
)
def test_a_wrong_value_is_refused_by_name_and_form(
    value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        settings_with(monkeypatch, *value.split("=", 1))
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("REDIS_URL", "redis://:secret@localhost:6379/3?protocol=2", None),
        ("REDIS_URL", "rediss://localhost", None),
        ("REDIS_URL", "unix:///run/redis.sock?db=2", None),
        ("REDIS_URL", "redis://:secret@[::1]:6379/3", None),
        ("PUBLIC_URL", "http://[::1]:8080", None),
        ("CSRF_TRUSTED_ORIGINS", "http://[::1]:8080", ["http://[::1]:8080"]),
        ("ALLOWED_HOSTS", "a.example, ::1, [2001:db8::1], *", ["a.example", "[::1]", "[2001:db8::1]", "*"]),
        ("RELAY_CURRENCY", "EUR", None),
        ("RELAY_CURRENCY", "", "USD"),
        ("PUBLIC_URL", "https://batch.example:8443/", "https://batch.example:8443"),
        ("PUBLIC_URL", "", None),
        ("CSRF_TRUSTED_ORIGINS", "https://*.example, http://b:8080", ["https://*.example", "http://b:8080"]),
        ("RELAY_BATCH_PAYLOAD_URL", "postgres:", None),
        ("RELAY_BATCH_PAYLOAD_URL", "s3://bucket/prefix", None),
        ("RELAY_BATCH_PAYLOAD_URL", "file:///folder", None),
        ("RELAY_BATCH_PAYLOAD_URL", "file:/folder", None),
        ("RELAY_BATCH_PAYLOAD_URL", "file://localhost/a%20folder", None),
        ("RELAY_MASTER_KEY", f"{KEY}, {KEY.rstrip('=')}", None),
        ("RELAY_MASTER_KEY", "", None),
        ("RELAY_BATCH_WINDOW", "auto", False),
        ("RELAY_BATCH_WINDOW", "40", 40),
    ],
)
def test_a_right_value_is_read(name: str, value: str, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`read` None: unchanged; False: as unset."""
    expected = {None: value, False: None}.get(read, read) if not isinstance(read, list) else read
    assert settings_with(monkeypatch, name, value)[name] == expected


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgresql://me:pass%40@host:5433/name?sslmode=require", ("name", "me", "pass@", "host", "5433")),
        (
            "postgresql://postgres:@/postgres?host=/run/socket",
            ("postgres", "postgres", "", "/run/socket", ""),
        ),
        ("postgresql://me@%2FRun%2Fsocket:5433/name", ("name", "me", "", "/Run/socket", "5433")),
        ("postgresql:///name", ("name", "", "", "", "")),
        ("postgresql://me:a%2Fb%3A%25@[::1]:5433/na%20me", ("na me", "me", "a/b:%", "::1", "5433")),
        ("postgresql://me@[fe80::1%25eth0]/name", ("name", "me", "", "fe80::1%eth0", "")),
        ("postgresql://me@a:1,b:2/name", ("name", "me", "", "a,b", "1,2")),
        ("postgresql://host/?dbname=name&user=me&password=p&port=5433", ("name", "me", "p", "host", "5433")),
        ("postgresql://me:100%@host/name", ("name", "me", "100%", "host", "")),
        ("postgresql://me:p@ss@host/name", ("name", "me", "p@ss", "host", "")),
        ("postgresql://me:p?#@host/name", ("name", "me", "p?#", "host", "")),
    ],
)
def test_a_right_database_is_read(url: str, parts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    read = settings_with(monkeypatch, "DATABASE_URL", url)["DATABASES"]["default"]
    assert tuple(read[name] for name in ("NAME", "USER", "PASSWORD", "HOST", "PORT")) == parts


@pytest.mark.parametrize("blank", ["%20", "+"])
def test_options_of_a_database_may_hold_blanks(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"postgresql://host/name?options=-c{blank}jit%3Doff"
    read = settings_with(monkeypatch, "DATABASE_URL", url)["DATABASES"]["default"]
    assert read["OPTIONS"]["options"] == "-c jit=off"


def test_a_refused_database_quotes_nothing_of_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        settings_with(monkeypatch, "DATABASE_URL", "postgresql://me:se%00cret@host/name")
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL"])
def test_an_address_may_be_in_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = {"DATABASE_URL": "postgresql://host/name", "REDIS_URL": "redis://host/3"}[name]
    (tmp_path / "secret").write_text(f"{url}\n")
    monkeypatch.delenv(name)
    assert settings_with(monkeypatch, f"{name}_FILE", str(tmp_path / "secret"))[name] == url


def test_celery_is_told_of_a_unix_socket_in_its_own_words() -> None:
    assert broker_url("unix:///run/redis.sock?db=2") == "redis+socket:///run/redis.sock?virtual_host=2"
    assert broker_url("redis://localhost/2") == "redis://localhost/2"
