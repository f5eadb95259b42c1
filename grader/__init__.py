"""Grades a submission: what a student sent goes in, a report comes out."""
