from django.db import migrations, models
from django.db.models import F


def name_cancelled(apps, schema_editor):
    """Give cycles their own status that were told apart by how their error begins."""
    told = {"status": "failed", "interrupted": True, "error__startswith": "Cancelled"}
    # They were stored with one attempt less, so that they would not count.
    apps.get_model("memory", "Cycle").objects.filter(**told).update(
        status="cancelled", interrupted=False, attempt=F("attempt") + 1
    )


def unname_cancelled(apps, schema_editor):
    """Tell cancelled cycles by their error again."""
    apps.get_model("memory", "Cycle").objects.filter(status="cancelled").update(
        status="failed", interrupted=True, attempt=F("attempt") - 1
    )


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0010_texts_are_kept_anew'),
    ]

    operations = [
        migrations.AlterField(
            model_name='cycle',
            name='status',
            field=models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('discarded', 'Discarded'), ('cancelled', 'Cancelled')], default='running', max_length=9),
        ),
        migrations.RunPython(name_cancelled, unname_cancelled, elidable=True),
        migrations.RemoveIndex(
            model_name='cycle',
            name='cycle_resting',
        ),
        migrations.AddIndex(
            model_name='cycle',
            index=models.Index(condition=models.Q(('next_attempt_at__isnull', False)), fields=['next_attempt_at'], name='cycle_resting'),
        ),
        migrations.AddConstraint(
            model_name='cycle',
            constraint=models.CheckConstraint(condition=models.Q(('interrupted', False), ('status', 'failed'), _connector='OR'), name='cycle_interrupted_is_failed'),
        ),
        migrations.AddConstraint(
            model_name='cycle',
            constraint=models.CheckConstraint(condition=models.Q(('next_attempt_at__isnull', True), ('status__in', ['failed', 'cancelled']), _connector='OR'), name='cycle_tried_again_without_result'),
        ),
    ]
