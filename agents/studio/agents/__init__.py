"""Show, describe and try out the agents that people talk to."""
