"""Show what needs attention, what runs, what is recent and what it all cost."""
