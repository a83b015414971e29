from django.db import migrations, models
from django.db.models.functions import Now


class Migration(migrations.Migration):
    dependencies = [("batches", "0002_policypause_at_once")]

    operations = [
        migrations.AddField(
            model_name="payloadstoremark", name="created_at", field=models.DateTimeField(db_default=Now())
        ),
        migrations.AddField(
            model_name="payloadstoremark",
            name="adopted",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
