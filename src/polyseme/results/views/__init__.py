"""How results show themselves: text rows in `tables`, drawn for terminal and notebooks.

Nothing is imported here: each of them is loaded when something is shown.
"""
