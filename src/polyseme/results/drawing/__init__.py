"""Charts of distributions and estimated tables, for terminals, notebooks and reports.

    distribution  the numbers of one attribute, in all records or in a group of them
    look          colors, fonts, axes
    bars          a distribution as bars with intervals
    heat          many groups, or two attributes, as squares
    tables        an estimated table, by whichever of the two suits it
    svg           a chart as a text that any browser draws

Nothing is imported here: the libraries that draw are loaded when they are needed.
"""
