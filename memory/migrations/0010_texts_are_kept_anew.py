from django.db import migrations, models
from django.utils import timezone


class Migration(migrations.Migration):
    """Call a column what it says; in the database its name stays, for servers that run on."""

    dependencies = [
        ('memory', '0009_count_lines_as_sent'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameField('blob', 'created_at', 'kept_at'),
                migrations.AlterField(
                    'blob', 'kept_at',
                    models.DateTimeField(
                        db_column='created_at',
                        default=timezone.now,
                        help_text='When it was last stored.',
                    ),
                ),
            ],
        ),
    ]
