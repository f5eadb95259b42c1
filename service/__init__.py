"""Serves grading over HTTP: a request goes in, an answer, a page or a queued run comes out."""
