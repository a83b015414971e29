from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("batches", "0007_policypause_concurrency_limit")]

    operations = [
        migrations.CreateModel(
            name="ItemResponse",
            fields=[
                ("item_id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("body", models.BinaryField()),
            ],
        ),
        # To compress each response would cost more processor time than all the rest of storing it.
        migrations.RunSQL(
            "ALTER TABLE batches_itemresponse ALTER COLUMN body SET STORAGE EXTERNAL",
            migrations.RunSQL.noop,
        ),
    ]
