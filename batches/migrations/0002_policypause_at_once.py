from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("batches", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="policypause",
            name="at_once",
            field=models.PositiveIntegerField(db_default=0, default=0),
        )
    ]
