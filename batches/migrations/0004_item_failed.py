from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    """Beside running workers: an index that is made otherwise stops every settle meanwhile."""

    atomic = False
    dependencies = [("batches", "0003_payloadstoremark_met")]

    operations = [
        AddIndexConcurrently(
            model_name="batchitem",
            index=models.Index(
                fields=["batch", "state"],
                name="item_failed",
                condition=Q(state__in=("discarded", "cancelled", "expired")),
            ),
        ),
    ]
