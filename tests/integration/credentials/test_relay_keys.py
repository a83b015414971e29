from __future__ import annotations

import base64
import hashlib
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from routing.credentials.relay_keys import (
    RelayKeyError,
    create_key,
    disable_key,
    enable_key,
    revoke_key,
    rotate_key,
)
from routing.models import RelayKey
from tests.support.rows.catalog import make_catalog

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 3, 12, tzinfo=UTC)


def sha256(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def test_a_key_is_48_random_bytes_of_which_only_the_hash_is_stored() -> None:
    rows = make_catalog("http://127.0.0.1:9")
    issued = create_key(principal=rows.service_account)
    key = RelayKey.objects.get(id=issued.id)
    assert issued.value.startswith("sk-rb-")
    assert len(base64.urlsafe_b64decode(issued.value.removeprefix("sk-rb-"))) == 48
    assert key.key_hash == sha256(issued.value)
    assert key.prefix == issued.value[:12]
    assert issued.value not in repr(issued)


def test_a_rotation_keeps_the_value_before_for_the_grace_period() -> None:
    rows = make_catalog("http://127.0.0.1:9")
    issued = rotate_key(key_id=rows.relay_key.id, grace_seconds=60, now=NOW)
    key = RelayKey.objects.get(id=rows.relay_key.id)
    assert key.key_hash == sha256(issued.value)
    assert key.previous_key_hash == sha256(rows.relay_key_value)
    assert key.grace_until == NOW + timedelta(seconds=60)
    assert key.prefix == issued.prefix


def test_revoking_again_keeps_the_first_moment() -> None:
    rows = make_catalog("http://127.0.0.1:9")
    revoke_key(key_id=rows.relay_key.id, now=NOW)
    revoke_key(key_id=rows.relay_key.id, now=NOW + timedelta(days=1))
    assert RelayKey.objects.get(id=rows.relay_key.id).revoked_at == NOW


def test_a_disabled_key_can_be_enabled_again() -> None:
    rows = make_catalog("http://127.0.0.1:9")
    disable_key(key_id=rows.relay_key.id)
    assert not RelayKey.objects.get(id=rows.relay_key.id).enabled
    enable_key(key_id=rows.relay_key.id)
    assert RelayKey.objects.get(id=rows.relay_key.id).enabled


def test_a_revoked_key_is_neither_enabled_nor_rotated() -> None:
    rows = make_catalog("http://127.0.0.1:9")
    revoke_key(key_id=rows.relay_key.id, now=NOW)
    with pytest.raises(RelayKeyError, match="is revoked"):
        enable_key(key_id=rows.relay_key.id)
    with pytest.raises(RelayKeyError, match="is revoked"):
        rotate_key(key_id=rows.relay_key.id, now=NOW)


def test_an_unknown_key_is_refused_by_each() -> None:
    unknown = uuid.uuid4()
    with pytest.raises(RelayKeyError, match="no key"):
        rotate_key(key_id=unknown, now=NOW)
    with pytest.raises(RelayKeyError, match="no key"):
        revoke_key(key_id=unknown, now=NOW)
    with pytest.raises(RelayKeyError, match="no key"):
        disable_key(key_id=unknown)
    with pytest.raises(RelayKeyError, match="no key"):
        enable_key(key_id=unknown)
