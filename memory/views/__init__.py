"""Answer the pages of the memory."""
