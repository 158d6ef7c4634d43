"""Show all conversations of a resource, find among them, and work on several at once."""
