"""What runs on a device: drawing a set from a campaign's integers, checking the promise, sending it when it can.

Nothing here needs numpy, polars, pyarrow or scipy, so that it runs on a small device: the standard library and
`cryptography` only. `docs/collection/protocol.md` says what other implementations have to do alike.
"""
