"""Documents and charts about a release: values in, HTML and pictures out.

    document    what a page says, as values
    assembling  a page from a manifest and what was found out about it
    page        the page as one self-contained HTML file
    charts      Vega-Lite charts, and pictures of them
    pictures    which pictures there are

Nothing is imported here: each of them is loaded when it is needed.
"""
