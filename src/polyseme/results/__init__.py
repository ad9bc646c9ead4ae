"""What the verbs return: results, how they are stored, and how they show themselves.

What a result says is computed elsewhere.

plan          what a policy comes to
verification  what became of the promises
findings      what the attackers found
table         an estimated table: its cells, intervals and notes
summary       smaller results that follow from one
ledger        what was published about the same people, and what all of it tells together
explanation   why a method did what it did, for the owner of the table
evaluation    how far estimates are from the truth
risk          what k, l and t a table has
views         how they show themselves
"""
