"""Hostile submissions are graded, never collected with our own tests."""

collect_ignore_glob = ["*/*"]
