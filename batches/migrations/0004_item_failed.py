from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("batches", "0003_payloadstoremark_met")]

    operations = [
        migrations.AddIndex(
            model_name="batchitem",
            index=models.Index(
                fields=["batch", "state"],
                name="item_failed",
                condition=Q(state__in=("discarded", "cancelled", "expired")),
            ),
        ),
    ]
