"""`/v1/batches`: three dialects on one path. The body of the create decides, and the batch keeps it."""

from __future__ import annotations

from batches.dialects.dialect_response import JSON_LINES_CONTENT_TYPE
from batches.dialects.openai.batch import BatchDeleted, FileBatch
from batches.dialects.openai.batch_list import MAX_LIST_LIMIT, BatchList
from batches.dialects.openai.chat_batch import ChatBatch
from batches.dialects.openai.output_lines import OutputLine
from batches.dialects.paging import DEFAULT_LIMIT
from batches.dialects.relay.results import FORMATS, INCLUDABLE_FIELDS, MAX_LIMIT
from batches.dialects.relay.wire_types import (
    RelayAccepted,
    RelayBatch,
    RelayBatchList,
    RelayCancelled,
    RelayResult,
    RelayResults,
)
from batches.dialects.results.result_lines import ResultLine
from batches.models import ITEM_STATES
from batches.openapi import examples, submissions
from relaybatch.http.openapi import JSON, Content, Operation, Response, json_response, query

_TAG = "Batches"
_ACCEPTED = json_response("The batch is stored (relay).", RelayAccepted, relay=examples.RELAY_ACCEPTED)
# Generated clients take the first kind that fits, and a chat batch has all members of a file batch: it comes first.
_CREATED = json_response(
    "The batch is stored (openai, chat).",
    (ChatBatch, FileBatch),
    openai=examples.FILE_BATCH,
    chat=examples.CHAT_BATCH,
)
_STATE = query("state", f"relay: only items in these states, comma-separated: {', '.join(ITEM_STATES)}.")

_CREATE = Operation(
    method="post",
    path="/v1/batches",
    operation_id="create_batch",
    tag=_TAG,
    summary="Submit requests as one batch",
    description=(
        "The body decides the dialect, which the batch keeps for its life.\n\n"
        "**relay**: `shape` and `requests` of bare bodies. Every item is checked now, and one that cannot run rejects "
        "the batch. Answered 202.\n\n"
        "**openai**: `input_file_id`, `endpoint` and `completion_window`: the requests are in a file. What is wrong in "
        "the file makes the batch `failed`, with the lines in `errors`. Answered 200.\n\n"
        "**chat**: `requests` of `custom_id` and `params`, which are Chat Completions. What is wrong in `params` "
        "becomes an errored line of the results. Answered 200 with a batch that OpenAI's SDK can poll."
    ),
    parameters=(submissions.IDEMPOTENCY_KEY,),
    body=Content(
        schema=(submissions.RELAY, submissions.OPENAI, submissions.CHAT),
        examples={
            "relay": examples.RELAY_SUBMISSION,
            "openai": examples.FILE_SUBMISSION,
            "chat": examples.CHAT_SUBMISSION,
        },
    ),
    responses={200: _CREATED, 202: _ACCEPTED},
    errors=(403, 409, 411, 429),
)
_LIST = Operation(
    method="get",
    path="/v1/batches",
    operation_id="list_batches",
    tag=_TAG,
    summary="List the caller's batches, newest first",
    description="Those of openai and chat by default, in one order: OpenAI's SDK could not read Relay's.",
    parameters=(
        query("dialect", "Batches of this dialect alone.", type="string", enum=["relay", "chat", "openai"]),
        query(
            "limit",
            "Batches on a page.",
            type="integer",
            minimum=1,
            maximum=MAX_LIST_LIMIT,
            default=DEFAULT_LIMIT,
        ),
        query("after", "openai, chat: only batches older than this one."),
        query("after_id", "openai, chat: the same by the name that Message Batches use."),
        query("before_id", "openai, chat: the page of batches just newer than this one."),
        query("cursor", "relay: the `next_cursor` of an earlier answer."),
    ),
    responses={
        200: json_response(
            "A page of batches.",
            (BatchList, RelayBatchList),
            openai={
                "object": "list",
                "data": [examples.FILE_BATCH, examples.CHAT_BATCH],
                "first_id": examples.FILE_BATCH["id"],
                "last_id": examples.CHAT_BATCH["id"],
                "has_more": False,
            },
            relay={"batches": [examples.RELAY_BATCH_WITHOUT_ITEMS], "next_cursor": None},
        )
    },
)
_RETRIEVE = Operation(
    method="get",
    path="/v1/batches/{batch_id}",
    operation_id="get_batch",
    tag=_TAG,
    summary="The status of a batch",
    parameters=(
        query("items", "relay: false leaves `items` out.", type="boolean", default=True),
        _STATE,
    ),
    responses={
        200: json_response(
            "The batch in its dialect.",
            (ChatBatch, FileBatch, RelayBatch),
            openai=examples.FILE_BATCH,
            chat=examples.CHAT_BATCH,
            relay=examples.RELAY_BATCH,
        )
    },
    errors=(404,),
)
_RESULTS = Operation(
    method="get",
    path="/v1/batches/{batch_id}/results",
    operation_id="get_batch_results",
    tag=_TAG,
    summary="The results of a batch, in the order of submission",
    description=(
        "**relay**: one JSON object at any time, also with unfinished items; `format=jsonl` gives a line an item.\n\n"
        "**openai**: an `OutputLine` a request as JSON Lines, those of both files, once the batch is done; before that "
        "409.\n\n"
        "**chat**: a `ResultLine` a request as JSON Lines, once the batch has ended; before that 409.\n\n"
        "Streamed, and compressed where `Accept-Encoding` allows gzip."
    ),
    parameters=(
        _STATE,
        query("include", f"relay: members to add, comma-separated: {', '.join(INCLUDABLE_FIELDS)}."),
        query(
            "after_idx", "relay: only items behind this one.", type="integer", minimum=0, maximum=2**31 - 1
        ),
        query("limit", "relay: at most so many items.", type="integer", minimum=1, maximum=MAX_LIMIT),
        query("format", "relay: others are always lines.", type="string", enum=list(FORMATS), default="json"),
    ),
    responses={
        200: Response(
            description="The results in the batch's dialect.",
            content={
                JSON: Content(schema=RelayResults, examples={"relay": examples.RELAY_RESULTS}),
                JSON_LINES_CONTENT_TYPE: Content(
                    schema={"type": "string"},
                    line=(OutputLine, ResultLine, RelayResult),
                    examples={"openai": examples.OUTPUT_LINES, "chat": examples.RESULT_LINES},
                ),
            },
        )
    },
    errors=(404, 409),
)
_CANCEL = Operation(
    method="post",
    path="/v1/batches/{batch_id}/cancel",
    operation_id="cancel_batch",
    tag=_TAG,
    summary="Stop what has not finished",
    description="Calling it again, or after the end, changes nothing. openai: a 409 after the end.",
    responses={
        200: json_response(
            "The cancel is recorded.",
            (ChatBatch, FileBatch, RelayCancelled),
            openai=examples.CANCELLED_FILE_BATCH,
            chat=examples.CANCELLED_CHAT_BATCH,
            relay={"status": "cancelled"},
        )
    },
    errors=(404, 409),
)
_RETRY = Operation(
    method="post",
    path="/v1/batches/{batch_id}/retry",
    operation_id="retry_batch",
    tag=_TAG,
    summary="Submit the failed items as a new batch",
    description="Of the same dialect, under the caller's policy of now. Without a body: every failed item.",
    parameters=(submissions.IDEMPOTENCY_KEY,),
    body=Content(schema=submissions.RETRY, examples={"by_failure_code": examples.RETRY_RATE_LIMITED}),
    body_required=False,
    responses={200: _CREATED, 202: _ACCEPTED},
    errors=(403, 404, 409, 411, 429),
)
_DELETE = Operation(
    method="delete",
    path="/v1/batches/{batch_id}",
    operation_id="delete_batch",
    tag=_TAG,
    summary="Delete a batch that has ended",
    description="Its requests and results are removed; its usage events stay, and so do its files.",
    responses={
        200: json_response(
            "The batch is deleted (openai, chat).",
            BatchDeleted,
            chat={"id": examples.CHAT_BATCH["id"], "object": "batch", "deleted": True},
        ),
        204: Response(description="The batch is deleted (relay)."),
    },
    errors=(404, 409),
)

OPERATIONS = (_CREATE, _LIST, _RETRIEVE, _RESULTS, _CANCEL, _RETRY, _DELETE)
