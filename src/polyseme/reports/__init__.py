"""Documents and charts about a release: values in, HTML and pictures out.

    document    what a page says, as values
    provenance  which release it is about: whose, of when, made by what
    assembling  a page from a manifest and what was found out about it
    risks       the three risks at its head
    judging     what is said of them, and the light
    *_words     models, checks, attacks and metrics in plain words; `numbers` has the units
    glossary    the terms that occur on it
    figures     its drawings
    page        the page as one self-contained HTML file
    charts      Vega-Lite charts, and pictures of them
    pictures    which pictures there are

Nothing is imported here: each of them is loaded when it is needed.
"""
