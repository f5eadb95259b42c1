"""People: who they are, how they sign in, and the part each has in a course."""
