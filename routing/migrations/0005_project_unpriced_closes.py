from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("routing", "0003_protect_policies_of_keys")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="unpriced_closes",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
