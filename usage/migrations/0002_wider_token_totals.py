from django.db import migrations, models

METERS = ("input", "cache_read", "cache_write", "output", "reasoning", "cache_write_5m", "cache_write_1h")


def _to(form: str) -> str:
    """One statement, since each of its own would write the table anew."""
    return f"ALTER TABLE usage_usagetotal {', '.join(f'ALTER {meter} TYPE {form}' for meter in METERS)}"


class Migration(migrations.Migration):
    dependencies = [("usage", "0001_initial")]

    operations = [
        migrations.RunSQL(
            _to("numeric(30, 0)"),
            _to("bigint"),
            state_operations=[
                migrations.AlterField(
                    model_name="usagetotal",
                    name=meter,
                    field=models.DecimalField(decimal_places=0, default=0, max_digits=30),
                )
                for meter in METERS
            ],
        ),
    ]
