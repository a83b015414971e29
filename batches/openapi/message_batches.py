"""`/v1/messages/batches`: Anthropic's Message Batches.

https://docs.claude.com/en/api/creating-message-batches
"""

from __future__ import annotations

from batches.dialects.dialect_response import JSON_LINES_CONTENT_TYPE
from batches.dialects.forwarded_headers import FORWARDED_HEADERS
from batches.dialects.messages import MAX_LIST_LIMIT, MessageBatch, MessageBatchDeleted, MessageBatchList
from batches.dialects.paging import DEFAULT_LIMIT
from batches.dialects.results.result_lines import ResultLine
from batches.openapi import examples, submissions
from relaybatch.http.openapi import Content, Operation, Response, header, json_response, query

_TAG = "Message batches"
_BATCH = json_response("The batch.", MessageBatch, messages=examples.MESSAGE_BATCH)

_CREATE = Operation(
    method="post",
    path="/v1/messages/batches",
    operation_id="create_message_batch",
    tag=_TAG,
    summary="Submit Messages requests as one batch",
    description="What is wrong in `params` becomes an errored line of the results.",
    parameters=(
        submissions.IDEMPOTENCY_KEY,
        *(header(name, "Sent upstream with every item.") for name in FORWARDED_HEADERS),
    ),
    body=Content(schema=submissions.MESSAGES, examples={"messages": examples.MESSAGES_SUBMISSION}),
    responses={200: _BATCH},
    errors=(403, 409, 411, 413, 429),
)
_LIST = Operation(
    method="get",
    path="/v1/messages/batches",
    operation_id="list_message_batches",
    tag=_TAG,
    summary="List the caller's message batches, newest first",
    parameters=(
        query(
            "limit",
            "Batches on a page.",
            type="integer",
            minimum=1,
            maximum=MAX_LIST_LIMIT,
            default=DEFAULT_LIMIT,
        ),
        query("after_id", "Only batches older than this one."),
        query("before_id", "The page of batches just newer than this one."),
    ),
    responses={
        200: json_response(
            "A page of batches; its ids are null when it is empty.",
            MessageBatchList,
            messages={
                "data": [examples.MESSAGE_BATCH],
                "has_more": False,
                "first_id": examples.MESSAGE_BATCH["id"],
                "last_id": examples.MESSAGE_BATCH["id"],
            },
        )
    },
)
_RETRIEVE = Operation(
    method="get",
    path="/v1/messages/batches/{batch_id}",
    operation_id="get_message_batch",
    tag=_TAG,
    summary="The status of a message batch",
    responses={200: _BATCH},
    errors=(404,),
)
_RESULTS = Operation(
    method="get",
    path="/v1/messages/batches/{batch_id}/results",
    operation_id="get_message_batch_results",
    tag=_TAG,
    summary="The results of a message batch that has ended",
    description="A `ResultLine` a request as JSON Lines, in the order of submission. Before the end: 409.",
    parameters=(
        header(
            "anthropic-version",
            "When it is sent, the `type` of an error is `error` and its kind stands inside.",
        ),
    ),
    responses={
        200: Response(
            description="The results.",
            content={
                JSON_LINES_CONTENT_TYPE: Content(
                    schema={"type": "string"},
                    line=ResultLine,
                    examples={"messages": examples.RESULT_LINES},
                )
            },
        )
    },
    errors=(404, 409),
)
_CANCEL = Operation(
    method="post",
    path="/v1/messages/batches/{batch_id}/cancel",
    operation_id="cancel_message_batch",
    tag=_TAG,
    summary="Stop what has not finished",
    description="Calling it again, or after the end, changes nothing.",
    responses={200: json_response("The batch.", MessageBatch, messages=examples.CANCELLED_MESSAGE_BATCH)},
    errors=(404,),
)
_RETRY = Operation(
    method="post",
    path="/v1/messages/batches/{batch_id}/retry",
    operation_id="retry_message_batch",
    tag=_TAG,
    summary="Submit the failed items as a new batch",
    description="Under the caller's policy of now. Without a body: every failed item.",
    parameters=(submissions.IDEMPOTENCY_KEY,),
    body=Content(schema=submissions.RETRY, examples={"by_failure_code": examples.RETRY_RATE_LIMITED}),
    body_required=False,
    responses={200: _BATCH},
    errors=(403, 404, 409, 411, 413, 429),
)
_DELETE = Operation(
    method="delete",
    path="/v1/messages/batches/{batch_id}",
    operation_id="delete_message_batch",
    tag=_TAG,
    summary="Delete a message batch that has ended",
    description="Its requests and results are removed; its usage events stay.",
    responses={
        200: json_response(
            "The batch is deleted.",
            MessageBatchDeleted,
            messages={"id": examples.MESSAGE_BATCH["id"], "type": "message_batch_deleted"},
        )
    },
    errors=(404, 409),
)

OPERATIONS = (_CREATE, _LIST, _RETRIEVE, _RESULTS, _CANCEL, _RETRY, _DELETE)
