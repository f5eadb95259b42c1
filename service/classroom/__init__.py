"""What a class did with a unit: reports go in as they are made, what a teacher asks of them comes out.

facts           what is kept of every report, so that no question has to read reports
selection       which students and submissions a question is about
standings       how far every student is; risk says who needs help, and why
overview, course_tests, mutants, misconceptions, students   one question each
answers, wording, sheets   how it is told: as JSON, in words, as CSV
"""
