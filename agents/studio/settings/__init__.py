"""Show and change the options of memory, with what a change would do shown first."""
