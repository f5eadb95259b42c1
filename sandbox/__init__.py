"""Runs a student's code apart from everything else: runs go in, what happened in each comes out."""
