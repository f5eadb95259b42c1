"""What a class did with a unit: reports go in as they are made, what a teacher asks of them comes out.

facts           what is kept of every report, so that no question has to read reports
selection       which students and submissions a question is about
progress        how far each student is, kept as it changes; risk says who needs help, and why
roster          who belongs to the class
overview, course_tests, mutants, misconceptions, students   one question each
answers, wording, sheets   how it is told: as JSON, in words, as CSV
"""
