"""The papers' experiments, reproduced, compared and judged: `polyseme reproduce`.

`study.py` says what a study is, `runner.py` lists the studies, measures their points on all cores and keeps what is
done, `command.py` writes the pages. Studies are by paper: the journal paper, the conference paper that came before it,
(l, e)-diversity, semantic rules, sensitive quasi-identifiers; and experiments of ours, about what the papers leave out.
"""
