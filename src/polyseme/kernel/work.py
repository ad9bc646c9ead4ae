"""Long work as one context: its progress, whether it should stop, and what is logged.

    token = Cancellation()
    with working(cancellation=token, progress=print):
        evaluate(...)                   # token.cancel("the user left") from any thread ends it with `Cancelled`

Verbs are marked with `verb`, which declares the stages of their work and the weight of each. Code at any depth opens a
stage and says how far it is, without parameters that are handed down:

    for question in tracked(questions, "tables", "Comparing tables"):
        ...

Opening a stage and advancing it also ask whether the work should stop; `check_cancelled` asks where there is none. A
stage is named in words of our own, and a log line holds counts and seconds: neither holds a value of the data or the
name of a column (the first line of a table without a header is a record).

The context belongs to the thread that set it, so that two calls in two threads do not interfere. What a helper thread
does is reported, and stopped, by the thread that waits for it. Libraries never leave the process: the command line does
(see `cli/progress.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import count
from time import perf_counter
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from polyseme.kernel.errors import Cancelled

__all__ = [
    "Cancellation",
    "Listener",
    "Progress",
    "Stage",
    "check_cancelled",
    "current_cancellation",
    "listening",
    "stage",
    "tracked",
    "verb",
    "working",
]

Item = TypeVar("Item")
P = ParamSpec("P")
R = TypeVar("R")
State = Literal["begun", "going", "ended"]

_BEFORE_THE_END = 0.99
"""The share of a verb whose last stage has ended: only what has returned is done."""


class Cancellation:
    """Whether some work should stop, and why. Any thread may cancel it; it cannot be taken back.

    others  tokens that stop the same work

    There is no lock on purpose: all of it is one reference that is set and read at once, and a signal handler may come
    at any moment, also while the same thread is in here.

    >>> token = Cancellation()
    >>> token.check()
    >>> token.cancel("the user left")
    >>> token.cancelled, token.reason
    (True, 'the user left')
    """

    def __init__(self, *others: Cancellation) -> None:
        self._reason: str | None = None
        self._others = others
        self._searches, self._settled = 0, False

    def cancel(self, reason: str = "cancelled") -> None:
        """Ask the work to stop; the first reason stays.

        It is shown to people, so it must not hold data.
        """
        if self._reason is None:
            self._reason = reason

    @property
    def cancelled(self) -> bool:
        return self._reason is not None or any(other.cancelled for other in self._others)

    @property
    def reason(self) -> str:
        """Why the work should stop; empty as long as it should not."""
        return self._reason or next((other.reason for other in self._others if other.cancelled), "")

    def check(self) -> None:
        """Raise `Cancelled` if the work should stop."""
        if self.cancelled:
            raise Cancelled(self.reason)

    def settle(self) -> bool:
        """Ask a search to end with the best that it has found; the work goes on with that.

        Returns False, and does nothing, where no search is under way, or was asked before.
        """
        if self._settled or not self._searches:
            return False
        self._settled = True
        return True

    @property
    def settled(self) -> bool:
        """Whether searches should end with what they have found."""
        return self._settled or any(other.settled for other in self._others)

    @contextmanager
    def searching(self) -> Iterator[None]:
        """What the block does is a search, which `settle` can end."""
        with ExitStack() as open_:
            for other in self._others:
                open_.enter_context(other.searching())
            self._searches += 1
            try:
                yield
            finally:
                self._searches -= 1


@dataclass(frozen=True)
class Progress:
    """How far one stage of some work is.

    verb    the verb that was called; empty outside of one
    stage   the stage's id, which stays the same between versions; the verb's own name for its work as a whole
    label   the stage in words
    number  tells stages with the same id apart
    state   "begun", "going" or "ended"; a stage that fails ends too
    done    steps done, of `total` where that is known
    weight  the part of the verb's work that this stage is, from 0 to 1, where that is declared
    share   the part of the verb's work that is done, from 0 to 1; it never goes back. None outside of a verb
    gap     of a search that has found something: how much less its loss could still become
    """

    verb: str
    stage: str
    label: str
    number: int
    state: State
    done: int
    total: int | None
    weight: float | None
    share: float | None
    gap: float | None = None


class Listener(Protocol):
    """Told of stages one by one: when each begins, how far it is, when it ends."""

    def begin(self, name: str, total: int | None) -> Any:
        """A stage begins; what is returned names it from now on."""
        ...

    def reach(self, task: Any, done: int) -> None:
        """So much of it is done."""
        ...

    def end(self, task: Any) -> None: ...


@dataclass(eq=False)
class _Verb:
    """A running verb: its stages in order, their weights, and the share that is done.

    outer  the verb that called it, of which it is a stage
    """

    name: str
    weights: Mapping[str, float]
    outer: _Verb | None = None
    share: float = 0.0

    @property
    def outermost(self) -> _Verb:
        return self if self.outer is None else self.outer.outermost

    def weight(self, stage: str) -> float | None:
        """The part of the outermost verb's work that a stage of this one is."""
        if stage not in self.weights:
            return None
        part = self.weights[stage] / sum(self.weights.values())
        if self.outer is None:
            return part
        own = self.outer.weight(self.name)
        return None if own is None else own * part

    def moved(self, stage: str, fraction: float) -> None:
        """Report that a part of a stage is done, and all stages before it."""
        if stage not in self.weights:
            return
        names = list(self.weights)
        before = sum(self.weights[name] for name in names[: names.index(stage)])
        share = (before + self.weights[stage] * fraction) / sum(self.weights.values())
        self.reached(min(share, _BEFORE_THE_END))

    def reached(self, share: float) -> None:
        self.share = max(self.share, share)
        if self.outer is not None:
            self.outer.moved(self.name, self.share)


@dataclass(frozen=True, eq=False)
class _Context:
    cancellation: Cancellation | None = None
    progress: Callable[[Progress], None] | None = None
    verb: _Verb | None = None

    def check(self) -> None:
        if self.cancellation is not None:
            self.cancellation.check()


_IDLE = _Context()
_current: ContextVar[_Context] = ContextVar("polyseme work", default=_IDLE)
_numbers = count()


class Stage:
    """One stage of some work; silent where no one listens."""

    def __init__(
        self, name: str = "", label: str = "", total: int | None = None, context: _Context | None = None
    ) -> None:
        self._name, self._label, self._total, self._context = name, label, total, context or _IDLE
        self._done, self._number = 0, next(_numbers)
        self._gap: float | None = None

    def advance(self, steps: int = 1) -> None:
        """So many more steps are done; raises `Cancelled` if the work should stop."""
        self.reach(self._done + steps)

    def reach(self, done: int, gap: float | None = None) -> None:
        """So many steps are done in all; raises `Cancelled` if the work should stop.

        gap  of a search that has found something: how much less its loss could still become
        """
        self._done, self._gap = done, gap
        self.tell("going", min(done / self._total, 1.0) if self._total else 0.0)
        self._context.check()

    def tell(self, state: State, fraction: float) -> None:
        """Report the progress of this stage, and of the verb's work, to the listener."""
        listener, verb = self._context.progress, self._context.verb
        if listener is None:
            return
        if verb is not None:
            verb.moved(self._name, fraction)
        listener(
            Progress(
                verb="" if verb is None else verb.outermost.name,
                stage=self._name,
                label=self._label,
                number=self._number,
                state=state,
                done=self._done,
                total=self._total,
                weight=None if verb is None else verb.weight(self._name),
                share=None if verb is None else verb.outermost.share,
                gap=self._gap,
            )
        )


@contextmanager
def stage(name: str, label: str, total: int | Callable[[], int | None] | None = None) -> Iterator[Stage]:
    """One stage of some work; a total that must be computed is computed only for a listener.

    name   its id, by which the verb's weights and other programs know it
    label  the same for people
    """
    context = _current.get()
    context.check()
    if context.progress is None:
        yield Stage(context=context)
        context.check()
        return
    opened = Stage(name, label, total() if callable(total) else total, context)
    opened.tell("begun", 0.0)
    try:
        context.check()
        yield opened
    except BaseException:
        opened.tell("ended", 0.0)
        raise
    opened.tell("ended", 1.0)
    context.check()


def tracked(items: Sequence[Item], name: str, label: str) -> Iterator[Item]:
    """The items one by one, as a stage of which each is a step.

    >>> list(tracked([1, 2], "counts", "Counting"))
    [1, 2]
    """
    with stage(name, label, len(items)) as progress:
        for item in items:
            yield item
            progress.advance()


def check_cancelled() -> None:
    """Raise `Cancelled` if the work of this thread should stop: for loops that are no stage."""
    _current.get().check()


def current_cancellation() -> Cancellation:
    """The token that stops the work of this thread: to be handed to other threads and processes."""
    return _current.get().cancellation or Cancellation()


@contextmanager
def working(
    *, cancellation: Cancellation | None = None, progress: Callable[[Progress], None] | None = None
) -> Iterator[None]:
    """Whatever verbs this thread calls in the block can be cancelled, and say how far they are.

    cancellation  stops them from another thread: a verb then raises `Cancelled` and leaves no file behind
    progress      called at every step; what it raises ends the work too
    """
    outer = _current.get()
    inner = replace(outer, cancellation=_joined(outer.cancellation, cancellation), progress=progress or outer.progress)
    before = _current.set(inner)
    try:
        yield
    finally:
        _current.reset(before)


def _joined(outer: Cancellation | None, own: Cancellation | None) -> Cancellation | None:
    """The token that either of the two cancels."""
    if outer is None or own is None or outer is own:
        return own or outer
    return Cancellation(own, outer)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Reports what this thread does in the block to the listener, stage by stage."""
    with working(progress=_Listening(listener)):
        yield


@dataclass(frozen=True, eq=False)
class _Listening:
    """Steps of work as a listener hears them; a verb as a whole is no stage to it."""

    listener: Listener
    tasks: dict[int, Any] = field(default_factory=dict)

    def __call__(self, progress: Progress) -> None:
        if progress.stage == progress.verb:
            return
        if progress.state == "begun":
            self.tasks[progress.number] = self.listener.begin(progress.label, progress.total)
        elif progress.state == "going":
            self.listener.reach(self.tasks[progress.number], progress.done)
        else:
            self.listener.end(self.tasks.pop(progress.number))


def verb(**weights: float) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a verb: it reports progress, can be cancelled, and logs its beginning and end.

    weights  the ids of its stages, in their order, with how long each takes in comparison; a verb that it calls is a
             stage by its name

    A keyword `cancellation` of the verb stops it beside the token of the context. Of an error only the name is logged.
    """

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        log, name = logging.getLogger(function.__module__), function.__name__

        @wraps(function)
        def run(*arguments: P.args, **options: P.kwargs) -> R:
            began = perf_counter()
            log.debug("%s: begins", name)
            try:
                with _running(_Verb(name, weights, _current.get().verb), options.get("cancellation")):
                    result = function(*arguments, **options)
            except BaseException as error:
                log.info("%s: ended by %s after %.2f s", name, type(error).__name__, perf_counter() - began)
                raise
            log.info("%s: done in %.2f s", name, perf_counter() - began)
            return result

        return run

    return mark


@contextmanager
def _running(running: _Verb, cancellation: object) -> Iterator[None]:
    """The context of a verb that runs; the beginning and end of the outermost one are logged."""
    own = cancellation if isinstance(cancellation, Cancellation) else None
    outer = _current.get()
    inner = replace(outer, cancellation=_joined(outer.cancellation, own), verb=running)
    inner.check()
    whole = Stage(running.name, running.name, None, inner if running.outer is None else _IDLE)
    before = _current.set(inner)
    try:
        whole.tell("begun", 0.0)
        inner.check()
        yield
    except BaseException:
        whole.tell("ended", 0.0)
        raise
    finally:
        _current.reset(before)
    running.reached(1.0)
    whole.tell("ended", 1.0)
