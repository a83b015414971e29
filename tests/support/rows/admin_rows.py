"""Rows of every kind for the admin to show, with texts planted where no page may show them; and clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from batches.models import BatchItem, File, Worker
from batches.viewer_group import GROUP_NAME
from routing.models import Alias, RateLimit, RateLimitRule, User
from tests.support.rows.catalog import make_catalog
from tests.support.rows.item_outcomes import complete, discard, end
from tests.support.rows.submissions import chat_body, submit
from tests.support.rows.usage_rows import draft, refused
from usage.ledger import record

if TYPE_CHECKING:
    from types import SimpleNamespace

HOST_KEY_SECRET = "planted-host-key-secret"
PROMPT = "planted-prompt"
ANSWER = "planted-answer"
UPSTREAM_ERROR = "planted-upstream-error"


def make_admin_rows() -> SimpleNamespace:
    """The catalog's rows, `open_batch` (waiting), `ended_batch` (one completed, one failed), `file`, `worker`."""
    world = make_catalog("http://127.0.0.1:9", host_key_values=(HOST_KEY_SECRET,), grants=())
    Alias.objects.create(model=world.models["openai"], pattern="gpt-", wildcard=True)
    world.rate_limit = RateLimit.objects.create(name="standard")
    RateLimitRule.objects.create(rate_limit=world.rate_limit, meter="concurrency", amount=3)
    world.open_batch = submit(world, *[chat_body(PROMPT)] * 3)
    world.ended_batch = submit(world, *[chat_body(PROMPT)] * 2)
    complete(world.ended_batch, 0, f'{{"choices": "{ANSWER} <script>alert(1)</script>"}}'.encode())
    discard(
        world.ended_batch,
        1,
        error_code="upstream_status",
        error="batch item: upstream status 400",
        upstream_status=400,
        upstream_error=UPSTREAM_ERROR.encode(),
    )
    end(world.ended_batch)
    world.items = list(BatchItem.objects.of(world.ended_batch))
    _record_events(world)
    now = timezone.now()
    world.file = File.objects.create(
        owner=world.ended_batch.owner, purpose="batch", filename="in.jsonl", size_bytes=20, created_at=now
    )
    world.worker = Worker.objects.create(host="here", pid=4711, slots=8, started_at=now, seen_at=now)
    return world


def planted_secrets(world: SimpleNamespace) -> tuple[str, ...]:
    """Texts that no page may show but the payload page."""
    return (HOST_KEY_SECRET, PROMPT, ANSWER, UPSTREAM_ERROR, world.relay_key_value, world.relay_key.key_hash)


def owner_client() -> Client:
    return logged_in_client(User.objects.create_superuser(username="owner"))


def viewer_client(name: str = "viewer") -> Client:
    user = User.objects.create_user(username=name, is_staff=True)
    user.groups.add(Group.objects.get(name=GROUP_NAME))
    return logged_in_client(user)


def logged_in_client(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def _record_events(world: SimpleNamespace) -> None:
    name = world.relay_key.key_hash
    batch_id = world.ended_batch.id
    record(draft(owner=name, batch_id=batch_id, project_id=world.project.id))
    record(draft(owner=name, batch_id=batch_id, project_id=world.project.id, item_idx=1, outcome=refused()))
