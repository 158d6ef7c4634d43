"""The bell: what happened lately in one's own resources that matters."""
