from django.db import migrations

BEFORE, AFTER, REASON = "revision ", "undo of ", "Undid revision "


def name_what_was_undone(apps, schema_editor):
    """Tell undoing one change from going back to the revision before it."""
    revisions = apps.get_model("memory", "Revision").objects
    for row in revisions.filter(trigger__startswith=BEFORE, reason__startswith=REASON):
        undone = row.reason.removeprefix(REASON)
        if undone.isdigit() and row.trigger == f"{BEFORE}{int(undone) - 1}":
            row.trigger = f"{AFTER}{undone}"
            row.save(update_fields=["trigger"])


def name_where_it_went_back(apps, schema_editor):
    """Name the revision before an undone one again."""
    for row in apps.get_model("memory", "Revision").objects.filter(trigger__startswith=AFTER):
        row.trigger = f"{BEFORE}{int(row.trigger.removeprefix(AFTER)) - 1}"
        row.save(update_fields=["trigger"])


class Migration(migrations.Migration):

    dependencies = [
        ("memory", "0011_cancelled_cycles"),
    ]

    operations = [
        migrations.RunPython(name_what_was_undone, name_where_it_went_back),
    ]
