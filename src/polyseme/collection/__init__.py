"""Collection: reports of devices are checked and stored once, until they become a release.

Nothing here ever sees a true value. What is kept of a report are the codes that everybody may read; nothing is kept
that names who sent it, from where, or when.
"""
