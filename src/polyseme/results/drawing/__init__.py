"""Charts of distributions and estimated tables, for terminals, notebooks and reports.

    distribution  the numbers of one attribute, in all records or in a group of them, and the colors
    bars          a distribution as bars with intervals; many groups, or two attributes, as squares; pictures of charts
    charts        the settings of a plan, and how many classes have how many records
    table_charts  an estimated table, by whichever of the two suits it

Nothing is imported here: the libraries that draw are loaded when they are needed.
"""
