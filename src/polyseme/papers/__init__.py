"""The experiments of the conference paper that came before the journal paper.

The papers' experiments, reproduced, compared and judged: `polyseme reproduce`.

`study.py` says what a study is, `registry.py` lists them, `running.py` measures their points on all cores and keeps
what is done, `pages.py` writes what came of it. Each study is one file in the folder of its paper.

The experiments of the paper on (l, e)-diversity.

The experiments of the paper on semantic rules.

Experiments of ours, about what the papers leave out.
"""
