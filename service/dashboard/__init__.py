"""Pages about a class: the answers of service/classroom and of reports go in, HTML with charts comes out.

asked, at         the address of a page -> which part of a class it asks for; and back
pages, units      the class, its units and its students
by_hand           grades that a teacher sets
submission        a submission and who reads it -> what its page shows; submission_pages, the pages
charts, drawings  numbers -> markup; what is known of a class -> its charts
arrays            two arrays that a course test compared -> heat maps of both and of their difference
saying, wording   how pages say numbers and times; what they call things
live              the mark by which a page knows whether anything moved
routers           all pages of this package, for the application
"""
