from django.db import migrations

from memory.services.sizes import Tables, recount


def count_anew(apps, schema_editor):
    """Count lines with what they are sent with, so that thresholds and gauges go by it."""
    names = ("MemoryRecord", "Observation", "Line", "Revision")
    tables = Tables(*(apps.get_model("memory", name) for name in names))
    for record in tables.records.objects.select_related("resource").order_by("pk"):
        recount(record, tables)


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0008_revision_options'),
    ]

    operations = [
        migrations.RunPython(count_anew, migrations.RunPython.noop, elidable=True),
    ]
