"""Every line that a process writes on stderr is one event with its fields."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from batches.execution.execute import execute_item
from batches.execution.in_flight import InFlightItems
from batches.models import BatchItem
from relaybatch.ids import uuid7
from tests.support.rows.catalog import make_catalog
from tests.support.rows.submissions import submit
from tests.support.servers.deployment import ROOT, wait_until
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from django.test import Client
    from pytest_django import Settings

    from tests.support.servers.web import Web
    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What the configured handler writes. That handler itself keeps the stderr that it was created with."""
    (handler,) = [each for each in logging.getLogger().handlers if type(each) is logging.StreamHandler]
    stream = io.StringIO()
    beside = logging.StreamHandler(stream)
    beside.setFormatter(handler.formatter)
    logging.getLogger().addHandler(beside)
    yield stream
    logging.getLogger().removeHandler(beside)


def line_about(written: io.StringIO, text: str) -> str:
    (line,) = [line for line in written.getvalue().splitlines() if text in line]
    return line


def test_a_text_line_of_a_request_has_its_id(client: Client, written: io.StringIO) -> None:
    response = client.get("/v1/batches/none")
    line = line_about(written, "relaybatch.access")
    assert f" request served request_id={response['request-id']} status=" in line
    assert line.endswith(" method=GET path=/v1/batches/none")


def test_a_text_line_of_an_item_has_its_ids(
    rows: SimpleNamespace, settings: Settings, written: io.StringIO
) -> None:
    item = BatchItem.objects.get(batch_id=submit(rows).id)
    settings.RELAY_BATCH_PAYLOAD_URL = "nonsense"
    execute_item(item.id, in_flight=InFlightItems(uuid7(), slots=8))
    assert line_about(written, "attempt settled").endswith(
        f" attempt settled batch_id={item.batch_id} item_id={item.id} attempt=1"
        " state=discarded code=load_input_failed"
    )


def test_a_line_of_a_breaker_that_opens_names_host_key_and_status_and_no_secret(
    upstream: Upstream, written: io.StringIO
) -> None:
    catalog = make_catalog(upstream.url, host_key_values=("planted-secret",))
    upstream.script(answers.json({"error": "planted-error"}, status=401))
    execute_item(
        BatchItem.objects.get(batch_id=submit(catalog).id).id, in_flight=InFlightItems(uuid7(), slots=8)
    )
    assert line_about(written, "breaker opened").endswith(
        " WARNING routing.gate.admission breaker opened"
        f" host={catalog.host.name} host_key={catalog.host_keys[0].name} status=401 seconds=60"
    )
    assert "planted" not in written.getvalue()


def test_every_line_of_the_web_process_is_json_and_gunicorns_are_among_them(web: Web) -> None:
    loggers = {json.loads(line)["logger"] for line in web.log().splitlines()}
    assert {"gunicorn.error", "relaybatch.access"} <= loggers


def test_what_gunicorn_refuses_is_told_by_its_kind_and_never_repeated(web: Web) -> None:
    assert web.send_raw(b"GET / HTTP/1.1\r\nAuthori zation: Bearer sk-rb-hidden\r\n\r\n").status == 400
    wait_until(lambda: "InvalidHeaderName" in web.log(), web.log)
    (line,) = [line for line in web.log().splitlines() if "InvalidHeaderName" in line]
    assert json.loads(line)["message"] == "Invalid request from ip=127.0.0.1: InvalidHeaderName"
    assert "sk-rb-hidden" not in web.log()


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_warning_of_pythons_is_one_line_of_the_log(form: str) -> None:
    warn = "import django, warnings; django.setup(); warnings.warn('first\\nsecond')"
    ended = subprocess.run(
        [sys.executable, "-c", warn],
        cwd=ROOT,
        env=os.environ | {"LOG_FORMAT": form},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    (line,) = ended.stderr.splitlines()
    assert "py.warnings" in line
    assert "UserWarning: first\\nsecond" in line
