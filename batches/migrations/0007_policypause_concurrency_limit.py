from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("batches", "0006_keyless_creates")]

    operations = [
        migrations.RenameField(model_name="policypause", old_name="at_once", new_name="concurrency_limit")
    ]
