"""Make the demo world: people, agents and a conversation, so that no page is empty."""
