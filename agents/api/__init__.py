"""Serve everything the pages show and do as JSON, to agents and scripts as well as to people."""
