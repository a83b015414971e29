"""An upstream with a private CA is trusted by the variables that other programs use for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from batches.models import BatchItem
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import submit
from tests.support.servers.certificates import self_signed, server_context
from tests.support.servers.deployment import wait_for_end
from tests.support.upstream.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.servers.deployment import Deployment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def private_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "notes").write_text("no certificate")
    return folder


@pytest.fixture
def certificate(private_folder: Path) -> Path:
    return self_signed(private_folder)


@pytest.fixture
def private_upstream(certificate: Path) -> Iterator[Upstream]:
    with Upstream(tls=server_context(certificate)) as upstream:
        yield upstream


@pytest.mark.parametrize(
    ("variable", "is_folder"),
    [
        ("REQUESTS_CA_BUNDLE", False),
        ("REQUESTS_CA_BUNDLE", True),
        ("CURL_CA_BUNDLE", False),
        ("SSL_CERT_FILE", False),
        ("SSL_CERT_FILE", True),
    ],
)
def test_it_is_trusted(
    deployment: Deployment,
    private_upstream: Upstream,
    certificate: Path,
    variable: str,
    is_folder: bool,
) -> None:
    deployment.worker(ready=True, **{variable: str(certificate.parent if is_folder else certificate)})
    batch = submit(make_catalog(private_upstream.url))
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 1}


def test_without_them_it_is_not(deployment: Deployment, private_upstream: Upstream) -> None:
    deployment.worker()
    batch = submit(make_catalog(private_upstream.url))
    wait_for_end(batch)
    error = BatchItem.objects.get(batch_id=batch.id).error
    assert "the certificate is not trusted" in error
