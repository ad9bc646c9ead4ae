"""How results show themselves: rows of text in `tables`, drawn for the terminal and for notebooks.

Nothing is imported here: each of them is loaded when something is shown.
"""
