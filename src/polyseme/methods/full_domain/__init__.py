"""Full-domain generalization: one level for each quasi-identifier, the best there is.

    data = Microdata(ladders, codes, sensitive)
    goal = Goal.of([{"k-anonymity": {"k": 5}}], data)
    recoding = full_domain(data, goal, loss=Loss("entropy"), suppression=0.04)

A node of the lattice of levels is *admissible* if the records in classes that do not fulfill the goal, which are then
suppressed, are at most a given share; something must be left. Of the admissible nodes the one of least loss is found,
exactly: see `search.py`. `optimum` gives the levels without making the table.
"""

from polyseme.methods.full_domain.optimum import METHOD, MOST_NODES, full_domain, least_suppression, optimum
from polyseme.methods.full_domain.search import Found, Progress

__all__ = ["METHOD", "MOST_NODES", "Found", "Progress", "full_domain", "least_suppression", "optimum"]
