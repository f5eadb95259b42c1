"""Regrades as reviewed changes: submissions are graded again beside what counts, and a teacher decides what follows.

versions   a unit -> the digests of its parts; two states of a unit -> what was changed
moves      two reports of a submission -> what came out otherwise, and what was different; pure
batches    a selection and a reason -> a batch, its progress, and what it would do to grades
trials     what waits in batches -> trial runs, a few at a time, and what came of them
decisions  apply, drop, roll back: in steps, each of which is whole
routes     the same as JSON, in the models of answers; pages for people
wording    every sentence of this package that a person reads
"""
