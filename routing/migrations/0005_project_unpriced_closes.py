from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("routing", "0004_hosts_take_query_headers_and_auth")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="unpriced_closes",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
