"""What is found out about many columns in as few readings as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["Blocks"]

Found = TypeVar("Found")


@dataclass(eq=False)
class Blocks(Generic[Found]):
    """Columns that are read together, and what was found out about those of the last reading.

    names  the columns, in the order in which they will be asked for
    cost   how much is held of a column, at the most
    read   finds out about some columns in one reading
    most   how much may be held; a single column may need more

    A caller that asks out of order gets the column from a separate reading.

    >>> def read(names):
    ...     return dict.fromkeys(names, f"read with {''.join(names)}")
    >>> blocks = Blocks("abcde", lambda name: 2, read, 5)
    >>> [blocks[name] for name in "abce"]
    ['read with ab', 'read with ab', 'read with cd', 'read with e']
    >>> blocks["b"]
    'read with b'
    """

    names: Sequence[str]
    cost: Callable[[str], int]
    read: Callable[[Sequence[str]], Mapping[str, Found]]
    most: int
    _blocks: dict[str, list[str]] = field(init=False, repr=False)
    _held: Mapping[str, Found] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._blocks = {block[0]: block for block in self._split()}

    def _split(self) -> Iterator[list[str]]:
        block: list[str] = []
        room = self.most
        for name in self.names:
            room -= self.cost(name)
            if block and room < 0:
                yield block
                block, room = [], self.most - self.cost(name)
            block.append(name)
        if block:
            yield block

    def __getitem__(self, name: str) -> Found:
        if name in self._held:
            return self._held[name]
        if name not in self._blocks:
            return self.read([name])[name]
        self._held = {}  # let go before more is read
        self._held = self.read(self._blocks[name])
        return self._held[name]
