"""The grader: a student's code runs in a child, every judgement is made outside it."""
