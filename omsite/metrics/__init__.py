"""Measure what this process does, and show it to Prometheus."""
