"""What a data holder can promise, how decoys are calibrated to it, and what a set tells an attacker."""
