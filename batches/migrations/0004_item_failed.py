from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Beside running workers: made otherwise, it would hold up every claim and settle meanwhile."""

    atomic = False
    dependencies = [("batches", "0003_payloadstoremark_met")]

    operations = [
        # One that was broken off leaves an index that is never used, and would be in the way.
        migrations.RunSQL("DROP INDEX CONCURRENTLY IF EXISTS item_failed", migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="batchitem",
            index=models.Index(
                fields=["batch", "state"],
                name="item_failed",
                condition=Q(state__in=("discarded", "cancelled", "expired")),
            ),
        ),
    ]
