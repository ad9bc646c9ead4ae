"""The experiments of the paper on sensitive quasi-identifiers, (l1..lq)-diversity and (t1..tq)-closeness."""
