"""Invariants of the files of batches: what they hold is what the results say, each line in the right one."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from tests.chaos.deployment.catalog import REVOKED_OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.checks.final_state import FinalState
    from tests.chaos.checks.findings import Findings
    from tests.chaos.deployment.web import WebClient
    from tests.chaos.submitted import Submission

FILES_MATCH = "output and error file hold the lines of the results, each in the right one"


class _NotAnsweredError(Exception):
    """A read that must succeed, since no fault is left."""


def check_files(final_state: FinalState, findings: Findings, web: WebClient) -> None:
    """Read the files of every batch whose owner may still read, from any web process."""
    for submission in final_state.submissions:
        is_known = submission.row_id in final_state.batches and submission.dialect == "openai"
        if is_known and not submission.is_deleted and submission.owner != REVOKED_OWNER:
            findings.record(FILES_MATCH, *_compare(submission, web), times=len(submission.hashes))


def _compare(submission: Submission, web: WebClient) -> Iterator[str]:
    try:
        yield from _differences(submission, web)
    except _NotAnsweredError as error:
        yield f"{submission.public_id}: {error}"


def _differences(submission: Submission, web: WebClient) -> Iterator[str]:
    where = f"{submission.path}/{submission.public_id}"
    batch = json.loads(_read(web, submission, where))
    lines = _read(web, submission, f"{where}/results").split(b"\n")[:-1]
    output = [line for line in lines if _is_success(json.loads(line))]
    errors = [line for line in lines if not _is_success(json.loads(line))]
    for name, expected in (("output_file_id", output), ("error_file_id", errors)):
        file_id = batch[name]
        content = _read(web, submission, f"/v1/files/{file_id}/content") if file_id else b""
        if content.split(b"\n")[:-1] != expected:
            yield f"{submission.public_id} ({batch['status']}): {name} {file_id} differs from the results"


def _is_success(line: dict[str, Any]) -> bool:
    return line["response"] is not None and line["response"]["status_code"] == 200


def _read(web: WebClient, submission: Submission, path: str) -> bytes:
    reply = web.call(random.Random(1), "GET", path, owner=submission.owner)
    if reply is None or reply.status != 200:
        raise _NotAnsweredError(f"{path} gave {reply and reply.status}")
    return reply.body
