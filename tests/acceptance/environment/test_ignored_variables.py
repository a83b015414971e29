"""Environment variables of other projects change nothing: a deployment is configured by its own variables only."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from batches.models import Batch, Worker
from tests.support.rows.submissions import chat_body, submit
from tests.support.servers.deployment import ROOT, Deployment, deployment_environment, wait_for_end
from tests.support.servers.web import web_process
from tests.support.upstream import upstream_responses as answers

if TYPE_CHECKING:
    from pathlib import Path
    from types import SimpleNamespace

    from tests.support.upstream.upstream import Upstream

pytestmark = pytest.mark.django_db(transaction=True)

NOBODY = "redis://127.0.0.1:1/0"
OF_CELERY = {
    "CELERY_BROKER_URL": NOBODY,
    "CELERY_BROKER_READ_URL": NOBODY,
    "CELERY_BROKER_WRITE_URL": NOBODY,
    "BROKER_URL": NOBODY,
    "CELERY_BROKER": NOBODY,
    "CELERY_RESULT_BACKEND": "nothing://",
    "RESULT_BACKEND": "nothing://",
    "CELERY_CONFIG_MODULE": "nothing",
    "CONFIG_MODULE": "nothing",
    "CELERY_CONFIG": "nothing",
    "CELERY_LOADER": "nothing:Loader",
    "LOADER": "nothing:Loader",
    "APP": "nothing",
    "CELERY_APP": "nothing",
    "CELERY_TRACE_APP": "1",
    "CELERY_WORKER_QUEUES": "others",
    "CELERY_WORKER_EXCLUDE_QUEUES": "items",
    "CELERY_WORKER_CONCURRENCY": "1",
    "CELERY_WORKER_POOL": "solo",
    "CELERY_WORKER_LOGLEVEL": "loud",
    "CELERY_WORKER_LOGFILE": "/nowhere/worker.log",
    "CELERY_WORKER_PIDFILE": "/nowhere/worker.pid",
    "CELERY_WORKER_TIME_LIMIT": "0.001",
    "CELERY_WORKER_AUTOSCALE": "1,1",
    "CELERY_WORKER_BEAT": "1",
    "CELERY_WORKER_DETACH": "1",
    "CELERY_WORKER_INCLUDE": "nothing",
    "CELERY_WORKER_PURGE": "1",
}
OF_POSTGRES = {
    "PGHOST": "/nowhere",
    "PGHOSTADDR": "127.0.0.9",
    "PGPORT": "1",
    "PGDATABASE": "nothing",
    "PGUSER": "nobody",
    "PGPASSWORD": "wrong",
    "PGSERVICE": "nothing",
    "PGSERVICEFILE": "/nowhere/services",
    "PGOPTIONS": "-c search_path=nowhere -c default_transaction_read_only=on",
    "PGSSLMODE": "verify-full",
    "PGCHANNELBINDING": "require",
    "PGREQUIREAUTH": "none",
    "PGTARGETSESSIONATTRS": "standby",
    "PGCLIENTENCODING": "LATIN1",
    "PGDATESTYLE": "German",
    "PGTZ": "Asia/Tokyo",
    "PGCONNECT_TIMEOUT": "many",
}
OF_OTHERS = {"DJANGO_SETTINGS_MODULE": "nothing.settings", "KOMBU_LOG_CONNECTION": "1"}
OF_REQUESTS = {
    name: "http://127.0.0.1:1"
    for word in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    for name in (word, word.lower())
}
OF_REQUESTS["SSLKEYLOGFILE"] = "/nowhere/keys"
FOREIGN = OF_CELERY | OF_POSTGRES | OF_OTHERS


def test_upstream_calls_know_no_netrc_no_cookies_and_no_proxies(
    deployment: Deployment, catalog: SimpleNamespace, upstream: Upstream, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password theirs\n")
    (tmp_path / ".netrc").chmod(0o600)
    upstream.handler = lambda _: answers.json(answers.CHAT, headers={"Set-Cookie": "seen=yes; Path=/"})
    files = {"HOME": str(tmp_path), "NETRC": str(tmp_path / ".netrc")}
    deployment.worker(ready=True, RELAY_BATCH_CONCURRENCY="1", **OF_REQUESTS, **files)
    batch = submit(catalog, *[chat_body()] * 3)
    wait_for_end(batch)
    assert batch.final_counts == {"completed": 3}
    assert [request.credential for request in upstream.requests] == ["upstream-secret"] * 3
    assert not any("cookie" in request.headers for request in upstream.requests)


def test_a_batch_goes_its_way_from_web_to_worker(
    deployment: Deployment,
    catalog: SimpleNamespace,
    upstream: Upstream,
    tmp_path: Path,
) -> None:
    with web_process(tmp_path, **FOREIGN) as web:
        deployment.worker(ready=True, **FOREIGN)
        sweeper = deployment.sweeper(**FOREIGN)
        assert web.call("GET", "/readyz").status == 200, web.log()
        body = b'{"shape":"openai","requests":[' + b",".join([chat_body()] * 30) + b"]}"
        answer = web.call("POST", "/v1/batches", headers=catalog.headers, body=body)
        assert answer.status == 202, answer.body
        batch = Batch.objects.get(id=answer.json["id"])
        wait_for_end(batch)
        assert Worker.objects.get().slots == 8
        assert sweeper.is_alive, sweeper.log()
    assert batch.final_counts == {"completed": 30}


@pytest.mark.parametrize(
    "code",
    ["from relaybatch.wsgi import application", "from relaybatch.asgi import application"],
    ids=["wsgi", "asgi"],
)
def test_other_servers_load_the_application(code: str) -> None:
    environment = deployment_environment() | FOREIGN
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_command_finds_settings_and_database() -> None:
    environment = deployment_environment() | FOREIGN
    command = [sys.executable, "manage.py", "check_usage", "--json"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)
