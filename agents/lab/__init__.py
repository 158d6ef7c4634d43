"""Try memory out with several people at once: panes, scenarios, and a check for leaks."""
