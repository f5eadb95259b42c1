"""How fast mutation grading is, held against other ways of doing the same work: `make bench`. No part of the product.

work        the unit's mutants as mutmut makes them, the suite, and folders that hold both
contenders  each runs the suite on every variant to its first failure, two at a time, and says which failed
service     submissions posted to a service that runs, until their reports are there
growth      how our cost grows with mutants, tests and cores
table       figures -> what is printed
"""
