from __future__ import annotations

import base64
import functools
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from routing.credentials.signing_keys import current_signer, rotate_signing_key
from routing.credentials.tokens import (
    InvalidToken,
    TokenDenied,
    delete_expired_tokens,
    mint_token,
    verify_token,
)
from routing.models import InferenceToken, SigningKey, User
from routing.secrets.encryption import SecretError, decrypt
from tests.support.rows.catalog import make_catalog
from tests.support.run.races import run_concurrently

if TYPE_CHECKING:
    from types import SimpleNamespace

    from pytest_django import Settings

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 3, 12, 0, 0, 700_000, UTC)
ISSUED = int(NOW.timestamp())


@pytest.fixture
def rows() -> SimpleNamespace:
    rows = make_catalog("http://127.0.0.1:9")
    rows.user = User.objects.create_user("ana", project=rows.project, policy=rows.policy, token_version=4)
    return rows


def token_of(rows: SimpleNamespace, *, ttl_seconds: int = 3_600) -> str:
    return mint_token(rows.user, project=None, ttl_seconds=ttl_seconds, now=NOW).token


def signed(claims: dict[str, Any], **headers: Any) -> str:
    """By our own key, as we never would."""
    signer = current_signer()
    return jwt.encode(claims, signer.private_key, algorithm="EdDSA", headers={"kid": signer.kid} | headers)


def claims_of(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return claims


def part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def test_a_token_has_exactly_the_documented_claims(rows: SimpleNamespace) -> None:
    minted = mint_token(rows.user, project=None, ttl_seconds=3_600, now=NOW)
    assert jwt.get_unverified_header(minted.token) == {
        "alg": "EdDSA",
        "kid": str(SigningKey.objects.get().kid),
        "typ": "JWT",
    }
    assert claims_of(minted.token) == {
        "iss": "relaybatch",
        "sub": f"user:{rows.user.pk}",
        "prj": str(rows.project.id),
        "ver": 4,
        "jti": str(minted.jti),
        "iat": ISSUED,
        "exp": ISSUED + 3_600,
    }
    assert minted.jti.version == 7
    assert minted.expires_at == datetime.fromtimestamp(ISSUED + 3_600, UTC)
    assert minted.token not in repr(minted)


def test_what_was_minted_verifies(rows: SimpleNamespace) -> None:
    minted = mint_token(rows.user, project=None, ttl_seconds=60, now=NOW)
    claims = verify_token(minted.token)
    assert (claims.jti, claims.prj, claims.ver) == (minted.jti, rows.project.id, 4)


@pytest.mark.parametrize("ttl_seconds", [-1, 0, 86_401, 10**12])
def test_a_life_longer_than_a_day_is_refused_in_words(rows: SimpleNamespace, ttl_seconds: int) -> None:
    with pytest.raises(TokenDenied, match="ttl: expected 1s to 24h"):
        token_of(rows, ttl_seconds=ttl_seconds)
    assert not InferenceToken.objects.exists()


def test_a_life_of_a_day_is_the_longest(rows: SimpleNamespace) -> None:
    assert claims_of(token_of(rows, ttl_seconds=86_400))["exp"] == ISSUED + 86_400


def test_a_user_without_a_project_or_not_active_gets_none() -> None:
    user = User.objects.create_user("bob")
    with pytest.raises(TokenDenied, match="user 'bob' has no project"):
        mint_token(user, project=None, ttl_seconds=60, now=NOW)
    user.is_active = False
    with pytest.raises(TokenDenied, match="user 'bob' is not active"):
        mint_token(user, project=make_catalog("http://127.0.0.1:9").project, ttl_seconds=60, now=NOW)


def test_a_token_of_an_unknown_signer_is_invalid(rows: SimpleNamespace) -> None:
    claims = claims_of(token_of(rows))
    stranger = Ed25519PrivateKey.generate()
    ours = str(SigningKey.objects.get().kid)
    for kid in (ours, str(uuid.uuid4()), "", "\x00", "../../etc/passwd", "x" * 900):
        forged = jwt.encode(claims, stranger, algorithm="EdDSA", headers={"kid": kid})
        assert_invalid(forged)


def test_another_algorithm_is_invalid_whatever_it_is_signed_with(rows: SimpleNamespace) -> None:
    token = token_of(rows)
    claims, key = claims_of(token), SigningKey.objects.get()
    kid = {"kid": str(key.kid)}
    assert_invalid(f"{part({'alg': 'none'} | kid)}.{part(claims)}.")
    public = bytes(key.public_key)
    assert_invalid(jwt.encode(claims, public, algorithm="HS256", headers=kid))
    assert_invalid(f"{part({'alg': 'HS256'} | kid)}.{token.split('.', 1)[1]}")
    assert_invalid(f"{part({'alg': 'EdDSA'})}.{token.split('.', 1)[1]}")


@pytest.mark.parametrize("missing", ["iss", "sub", "prj", "ver", "jti", "iat", "exp"])
def test_a_claim_that_is_missing_is_invalid(rows: SimpleNamespace, missing: str) -> None:
    claims = claims_of(token_of(rows))
    verify_token(signed(claims))
    del claims[missing]
    assert_invalid(signed(claims))


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "somebody"},
        {"sub": "user:"},
        {"sub": "user:1 or 1=1"},
        {"sub": "serviceaccount:1"},
        {"prj": "search"},
        {"ver": "4"},
        {"ver": True},
        {"jti": "1"},
        {"exp": 1e300},
        {"exp": None},
        {"aud": "somewhere"},
        {"admin": True},
    ],
    ids=str,
)
def test_a_claim_of_another_form_is_invalid(rows: SimpleNamespace, changed: dict[str, Any]) -> None:
    assert_invalid(signed(claims_of(token_of(rows)) | changed))


def test_a_token_has_one_spelling(rows: SimpleNamespace) -> None:
    token = token_of(rows)
    head, body, signature = token.split(".")
    for spelling in (
        f"{token}==",
        f"{head}.{body}.{signature[:-1]}{'B' if signature[-1] == 'A' else 'A'}",
        f"{head}.{body}.{signature}\n",
        f"{head}. {body}.{signature}",
        f"{head}.{body}.",
        f"{head}..{signature}",
        f"{head}.{body}x.{signature}",
        f"{token}é",
        f"{token}\udc80",
    ):
        assert_invalid(spelling)


def test_hostile_forms_are_invalid_and_cheap() -> None:
    deep = base64.urlsafe_b64encode(b'{"a":' + b"[" * 1_400).decode().rstrip("=")
    for value in ("eyJh.eyJz.c2ln", "ey..", f"{deep}.e30.e30", "ey" + "A" * 100_000 + ".A.A"):
        assert_invalid(value)


def test_tokens_outlive_the_key_that_signed_them(rows: SimpleNamespace) -> None:
    before = token_of(rows)
    assert rotate_signing_key(now=NOW) == 1
    after = token_of(rows)
    kids = {jwt.get_unverified_header(token)["kid"] for token in (before, after)}
    assert kids == {str(kid) for kid in SigningKey.objects.values_list("kid", flat=True)}
    verify_token(before)
    verify_token(after)
    delete_expired_tokens(now=NOW + timedelta(hours=24))
    verify_token(before)
    delete_expired_tokens(now=NOW + timedelta(hours=26))
    assert_invalid(before)
    verify_token(after)


def test_a_private_key_is_stored_encrypted_and_dropped_with_its_retirement(rows: SimpleNamespace) -> None:
    token_of(rows)
    key = SigningKey.objects.get()
    private = decrypt(bytes(key.private_key_encrypted or b""))
    assert Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw() == bytes(
        key.public_key
    )
    rotate_signing_key(now=NOW)
    key.refresh_from_db()
    assert key.private_key_encrypted is None


def test_a_signing_key_that_cannot_be_read_is_named_and_can_be_rotated_away(
    rows: SimpleNamespace, settings: Settings
) -> None:
    token_of(rows)
    settings.RELAY_MASTER_KEY = base64.b64encode(b"another key".ljust(32)).decode()
    with pytest.raises(SecretError, match=f"signing key {SigningKey.objects.get().kid}: .*RELAY_MASTER_KEY"):
        token_of(rows)
    rotate_signing_key(now=NOW)
    verify_token(token_of(rows))


def test_rows_are_removed_a_day_after_their_tokens_expired_but_for_each_users_last(
    rows: SimpleNamespace,
) -> None:
    jtis = [mint_token(rows.user, project=None, ttl_seconds=60, now=NOW).jti for _ in range(3)]
    delete_expired_tokens(now=NOW + timedelta(hours=24))
    assert InferenceToken.objects.count() == 3
    delete_expired_tokens(now=NOW + timedelta(hours=25))
    assert [token.jti for token in InferenceToken.objects.all()] == [max(jtis)]


@pytest.mark.django_db(transaction=True)
def test_eight_that_need_the_first_key_at_once_make_one() -> None:
    signers = run_concurrently([current_signer] * 8)
    assert {signer.kid for signer in signers} == {str(SigningKey.objects.get().kid)}


@pytest.mark.django_db(transaction=True)
def test_rotations_at_once_leave_one_key_that_signs() -> None:
    first = current_signer()
    run_concurrently([functools.partial(rotate_signing_key, now=NOW)] * 8)
    assert SigningKey.objects.filter(retired_at=None).count() == 1
    assert current_signer().kid != first.kid


def assert_invalid(token: str) -> None:
    with pytest.raises(InvalidToken):
        verify_token(token)
