"""The subcommands of ``manage.py om``, one module each."""
