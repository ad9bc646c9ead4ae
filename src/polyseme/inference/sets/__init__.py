"""From released sets back to the table of true values, with error bars."""
