"""Empty the tables after a test that commits, in a tenth of the time of Django's flush.

The flush truncates every table, and then makes all permissions anew. Here only what has rows is emptied, and what
migrations have made stays.
"""

from __future__ import annotations

import functools

from django.apps import apps
from django.db import connection, transaction
from django.test import TransactionTestCase

MADE_BY_MIGRATIONS = {
    "django_content_type",
    "auth_permission",
    "auth_group",  # the viewers
    "auth_group_permissions",
}


def use_fast_truncate() -> None:
    """Replace Django's flush in all tests of this run."""
    TransactionTestCase._fixture_teardown = lambda _: _truncate()  # type: ignore[attr-defined]


def _truncate() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_non_empty_tables_sql())
        filled = [row[0] for row in cursor.fetchall()]
        # In any order and without checks of foreign keys, since all rows go. Only superusers may set this.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table in filled:
            cursor.execute(f"DELETE FROM {table}")


@functools.cache
def _non_empty_tables_sql() -> str:
    tables = [model._meta.db_table for model in apps.get_models(include_auto_created=True)]
    return " UNION ALL ".join(
        f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})"
        for table in tables
        if table not in MADE_BY_MIGRATIONS
    )
