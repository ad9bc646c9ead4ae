"""How far apart values are, and what they generalize to."""
