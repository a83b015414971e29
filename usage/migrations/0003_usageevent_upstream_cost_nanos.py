from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("usage", "0002_wider_token_totals")]

    operations = [
        migrations.AddField(
            model_name="usageevent",
            name="upstream_cost_nanos",
            field=models.BigIntegerField(null=True),
        ),
    ]
