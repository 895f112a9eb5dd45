"""A program with a mistake."""

value = 1 / 0
