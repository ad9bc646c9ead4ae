"""Formulas such as `y ~ income + age*sex`: what they mean, and their numbers.

A small grammar, as users of R and statsmodels write it:

    outcome ~ a + b      terms          a:b      their product           a*b      a + b + a:b
    - 1, + 0             no intercept   C(x)     x as categories         (a + b):c
    I(x**2), log(x)      arithmetic     x >= 50, disease == "flu", x in ("a", "b")      1 or 0
    `marital status`     a column whose name is no word

The expressions inside are parsed as Python and only what stands above is allowed: nothing of them is ever run.
Comparisons bind closer than `+` between terms. Categories have a column for each level but the first where the model
has the same term without them, and one for each level elsewhere, as in patsy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations, product
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from polyseme.kernel.arrays import Floats, Ints
from polyseme.kernel.errors import Problem, QuestionError, nearest
from polyseme.kernel.spelling import written

__all__ = ["Expression", "Factor", "Formula", "Frame", "Variable", "parse_condition", "parse_formula"]

Kind: TypeAlias = Literal["number", "truth", "category", "text", "list", "unknown"]

_FUNCTIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs,
}  # fmt: skip
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Floats, Floats], Floats]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide, ast.Pow: np.power,
    ast.FloorDiv: np.floor_divide, ast.Mod: np.mod,
}  # fmt: skip
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: np.equal, ast.NotEq: np.not_equal, ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}  # fmt: skip
_LACKS = {
    ast.BitAnd: "write 'and' for &",
    ast.BitOr: "write 'or' for |",
    ast.BitXor: "write I(x**2) for a power, a*b for an interaction",
    ast.MatMult: "write a:b for a product of terms",
}
_GRAMMAR = 'known: a + b, a:b, a*b, - 1, C(x), I(x**2), log(x), x >= 50, x == "text", x in (1, 2), and, or, not'
INTERCEPT = "Intercept"
_LONGEST, _DEEPEST = 4_000, 100
"""Characters and brackets of a formula: far more than a reader follows, and no work for the parser."""


@dataclass(frozen=True, eq=False)
class Variable:
    """A column, or a protected attribute, that formulas may name.

    axis     the place of the protected attribute among those of the formula; None for an open column
    numbers  of each record, or of each protected value; None where it has none
    cells    the code of each record's, or protected value's, category: None where these follow from the numbers
    labels   the categories
    ordered  whether the categories have an order
    quiet    whether labels must not be named in messages
    why_not  why it has no numbers, and what to do
    """

    name: str
    axis: int | None
    numbers: Floats | None
    cells: Ints | None = None
    labels: tuple[Any, ...] = ()
    ordered: bool = False
    quiet: bool = True
    why_not: tuple[str, str] = ("its values are texts", "compare it with a text, or write C({name})")

    @cached_property
    def categories(self) -> tuple[Ints, tuple[Any, ...]]:
        """The code of each record or protected value, and the labels."""
        if self.cells is not None:
            return self.cells, self.labels
        assert self.numbers is not None  # noqa: S101 - a variable has one of the two
        levels, codes = np.unique(self.numbers, return_inverse=True)
        return codes.astype(np.int64), tuple(int(level) if level == int(level) else float(level) for level in levels)

    @cached_property
    def spellings(self) -> Mapping[str, int]:
        """The code of each label."""
        return {written(label): code for code, label in enumerate(self.categories[1])}


@dataclass(frozen=True, eq=False)
class Frame:
    """The variables of a formula.

    sizes  the number of values of each protected attribute
    known  all columns that could be named
    """

    variables: Mapping[str, Variable]
    sizes: tuple[int, ...] = ()
    known: tuple[str, ...] = ()

    @cached_property
    def grid(self) -> tuple[Ints, ...]:
        """The value of each protected attribute in each combination."""
        return tuple(axis.ravel() for axis in np.indices(self.sizes)) if self.sizes else ()

    def spread(self, variable: Variable, values: Any, rows: slice) -> Any:
        """Numbers of records or values: (n, 1) or (1, combinations)."""
        return values[rows, None] if variable.axis is None else values[self.grid[variable.axis]][None, :]


@dataclass(frozen=True, eq=False)
class Expression:
    """One expression of a formula, at its place."""

    node: ast.expr
    place: int
    quoted: Mapping[int, str] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """As it is written in the names of terms."""
        return _unparsed(self.node, self.quoted)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns that it names."""
        called = {id(node.func) for node in ast.walk(self.node) if isinstance(node, ast.Call)}
        found = [node for node in ast.walk(self.node) if isinstance(node, ast.Name) and id(node) not in called]
        return tuple(dict.fromkeys(_name(node, self.quoted) for node in found))

    def parts(self) -> Iterator[Expression]:
        """What is joined by `and`."""
        if isinstance(self.node, ast.BoolOp) and isinstance(self.node.op, ast.And):
            for value in self.node.values:
                yield from Expression(value, self.place, self.quoted).parts()
        else:
            yield self

    @property
    def category(self) -> str | None:
        """The name of the column in `C(x)`; None where it is something else."""
        node = self.node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "C":
            return _name(node.args[0], self.quoted) if isinstance(node.args[0], ast.Name) else None
        return None

    def as_categories(self, frame: Frame) -> Variable | None:
        """The variable whose categories it stands for; None where it is a number."""
        name = self.category
        if name is None and isinstance(self.node, ast.Name):
            name = _name(self.node, self.quoted)
            if frame.variables[name].numbers is not None:
                return None
        return None if name is None else frame.variables[name]

    def values(self, frame: Frame, rows: slice) -> Floats:
        """Its numbers, for some records and all protected values: (n or 1, combinations or 1)."""
        return np.asarray(np.atleast_2d(_Evaluation(frame, rows, self.quoted).of(self.node)), dtype=np.float64)

    def numeric_names(self) -> Iterator[str]:
        """The columns whose numbers are used: all but those in C( ) and beside a text."""
        yield from _numeric(self.node, self.quoted)

    def problems(self, frame: Frame, where: str, wanted: Kind | None = None) -> list[Problem]:
        """Everything that is wrong with it."""
        check = _Check(frame, where, self.place, self.quoted)
        kind = check.kind(self.node, top=True)
        if wanted == "truth" and kind in ("number", "category") and not check.problems:
            check.refuse(self.node, "expected a condition", 'such as age >= 30 and sex == "f"')
        return check.problems


@dataclass(frozen=True, eq=False)
class Formula:
    """Outcome, terms and whether there is an intercept; a term is a product of expressions."""

    text: str
    outcome: Expression
    terms: tuple[tuple[Expression, ...], ...]
    intercept: bool

    @property
    def expressions(self) -> Iterator[Expression]:
        yield self.outcome
        for term in self.terms:
            yield from term

    @property
    def names(self) -> tuple[str, ...]:
        """All columns that it names."""
        return tuple(dict.fromkeys(name for expression in self.expressions for name in expression.names))

    def columns(self, frame: Frame) -> list[tuple[str, tuple[Factor, ...]]]:
        """The columns of the design: names, and what is multiplied."""
        found: list[tuple[str, tuple[Factor, ...]]] = [(INTERCEPT, ())] if self.intercept else []
        spanned: dict[frozenset[str], set[frozenset[str]]] = {frozenset(): {frozenset()} if self.intercept else set()}
        for term in self.terms:
            texts = [each.text for each in term if each.as_categories(frame) is not None]
            numeric = frozenset(each.text for each in term) - frozenset(texts)
            for coded in _codings(texts, spanned.setdefault(numeric, set())):
                used = [each for each in term if each.text in numeric or each.text in coded]
                choices = [_columns_of(each, frame, coded.get(each.text, False)) for each in used]
                found += [(":".join(column.name for column in some), some) for some in product(*choices)]
        return found


def _codings(categories: Sequence[str], spanned: set[frozenset[str]]) -> list[dict[str, bool]]:
    """How categories of a term are coded: whether the first level has no column.

    With contrasts, a product of categories stands for itself; with all levels, for itself and the product without it.
    So the products that the model does not have yet are joined to as few as possible, as in patsy.

    >>> _codings(["a", "b"], {frozenset(), frozenset("a")}) == [{"a": False, "b": True}]
    True
    """
    subsets = [frozenset(some) for size in range(len(categories) + 1) for some in combinations(categories, size)]
    coded = [dict.fromkeys(sorted(some), True) for some in subsets if some not in spanned]
    spanned.update(subsets)
    joined = True
    while joined:
        joined = False
        for one, other in permutations(coded, 2):
            more = set(other) - set(one)
            if len(more) == 1 and set(one) < set(other) and all(other[key] == one[key] for key in one):
                (key,) = more
                if other[key]:
                    coded = [each for each in coded if each is not one and each is not other] + [{**other, key: False}]
                    joined = True
                    break
    return coded


@dataclass(frozen=True, eq=False)
class Factor:
    """One factor of a column: the numbers of an expression, or 1 where a variable has a level."""

    name: str
    expression: Expression
    variable: Variable | None = None
    level: int = -1

    def values(self, frame: Frame, rows: slice) -> Floats:
        if self.variable is None:
            return self.expression.values(frame, rows)
        return np.asarray(frame.spread(self.variable, self.variable.categories[0], rows) == self.level, np.float64)


def _columns_of(expression: Expression, frame: Frame, reduced: bool) -> list[Factor]:
    variable = expression.as_categories(frame)
    if variable is None:
        return [Factor(expression.text, expression)]
    mark = "T." if reduced else ""
    return [
        Factor(f"{expression.text}[{mark}{written(label)}]", expression, variable, level)
        for level, label in enumerate(variable.categories[1])
        if level or not reduced
    ]


class _Evaluation:
    """The numbers of an expression whose problems were looked for."""

    def __init__(self, frame: Frame, rows: slice, quoted: Mapping[int, str]) -> None:
        self.frame, self.rows, self.quoted = frame, rows, quoted

    def of(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return float(cast("float", node.value))
        if isinstance(node, ast.Name):
            variable = self.frame.variables[_name(node, self.quoted)]
            return self.frame.spread(variable, variable.numbers, self.rows)
        if isinstance(node, ast.UnaryOp):
            inner = self.of(node.operand)
            return (
                1.0 - (inner != 0)
                if isinstance(node.op, ast.Not)
                else -inner
                if isinstance(node.op, ast.USub)
                else inner
            )
        if isinstance(node, ast.BinOp):
            with np.errstate(all="ignore"):
                return _ARITHMETIC[type(node.op)](self.of(node.left), self.of(node.right))
        if isinstance(node, ast.BoolOp):
            found = [self.of(value) != 0 for value in node.values]
            joined = found[0]
            for more in found[1:]:
                joined = joined & more if isinstance(node.op, ast.And) else joined | more
            return np.asarray(joined, dtype=np.float64)
        if isinstance(node, ast.Compare):
            return self._compared(node)
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)  # noqa: S101, PT018 - see `_Check`
        inner = self.of(node.args[0])
        with np.errstate(all="ignore"):
            return inner if node.func.id == "I" else _FUNCTIONS[node.func.id](inner)

    def _compared(self, node: ast.Compare) -> Floats:
        found: Any = True
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators):
            if isinstance(operator, ast.In | ast.NotIn):
                inside: Any = False
                for each in _elements(right):
                    inside = inside | self._pair(left, ast.Eq(), each)
                held = ~inside if isinstance(operator, ast.NotIn) else inside
            else:
                held = self._pair(left, operator, right)
            found = held & found
        return np.asarray(found, dtype=np.float64)

    def _pair(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Any:
        compare = _COMPARISONS[type(operator)]
        sides = [self._side(left, right), self._side(right, left)]
        return compare(*sides)

    def _side(self, node: ast.expr, other: ast.expr) -> Any:
        """One side of a comparison: codes where it is between a column and a text."""
        by_label = _is_text(node) or _is_text(other)
        if not by_label:
            return self.of(node)
        if isinstance(node, ast.Name):
            variable = self.frame.variables[_name(node, self.quoted)]
            return self.frame.spread(variable, variable.categories[0], self.rows)
        assert isinstance(node, ast.Constant) and isinstance(other, ast.Name)  # noqa: S101, PT018 - see `_Check`
        return self.frame.variables[_name(other, self.quoted)].spellings[str(node.value)]


class _Check:
    """What kind of thing an expression is, and everything that is wrong with it."""

    def __init__(self, frame: Frame, where: str, place: int, quoted: Mapping[int, str]) -> None:
        self.frame, self.where, self.place, self.quoted = frame, where, place, quoted
        self.problems: list[Problem] = []

    def refuse(self, node: ast.AST, what: str, hint: str = "") -> Kind:
        place = self.place + getattr(node, "col_offset", 0) + 1
        self.problems.append(Problem(f"{self.where}, character {place}", what, hint))
        return "unknown"

    def kind(self, node: ast.expr, top: bool = False) -> Kind:
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd | ast.Not):
            self.number(node.operand)
            return "truth" if isinstance(node.op, ast.Not) else "number"
        if isinstance(node, ast.BinOp):
            if type(node.op) not in _ARITHMETIC:
                return self.refuse(node, "this operator is not known here", _LACKS.get(type(node.op), _GRAMMAR))
            self.number(node.left)
            self.number(node.right)
            return "number"
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self.number(value)
            return "truth"
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.Call):
            return self._call(node, top)
        return self.refuse(node, "this is not part of a formula", _GRAMMAR)

    def _constant(self, node: ast.Constant) -> Kind:
        if isinstance(node.value, bool | int | float):
            return "number"
        return "text" if isinstance(node.value, str) else self.refuse(node, "this constant is not known here", _GRAMMAR)

    def _name(self, node: ast.Name) -> Kind:
        name = _name(node, self.quoted)
        if name not in self.frame.variables:
            return self.refuse(node, f"no column '{name}' in this release", nearest(name, self.frame.known))
        return "category" if self.frame.variables[name].numbers is None else "number"

    def number(self, node: ast.expr) -> None:
        """It must have numbers here."""
        kind = self.kind(node)
        if kind == "category" and isinstance(node, ast.Name):
            variable = self.frame.variables[_name(node, self.quoted)]
            what, hint = variable.why_not
            self.refuse(node, f"'{variable.name}' is used as a number, but {what}", hint.format(name=variable.name))
        elif kind in ("text", "category", "list"):
            self.refuse(node, "a number is expected here, not a text")

    def _call(self, node: ast.Call, top: bool) -> Kind:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in ("C", "I", *_FUNCTIONS):
            return self.refuse(
                node, f"'{ast.unparse(node.func)}' is not a function here", f"known: C, I, {', '.join(_FUNCTIONS)}"
            )
        if len(node.args) != 1 or node.keywords:
            return self.refuse(node, f"{name}( ) takes one argument", f"such as {name}(age)")
        if name != "C":
            self.number(node.args[0])
            return "number"
        if not isinstance(node.args[0], ast.Name):
            return self.refuse(node, "C( ) takes the name of a column", "such as C(occupation)")
        self._name(node.args[0])
        return "category" if top else self.refuse(node, "C( ) stands by itself in a term", "such as C(x):age")

    def _compare(self, node: ast.Compare) -> Kind:
        for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators):
            if isinstance(operator, ast.In | ast.NotIn):
                if not isinstance(right, ast.Tuple | ast.List) or not right.elts:
                    self.refuse(right, "a list is expected after 'in'", 'such as x in ("a", "b")')
                    continue
                for each in right.elts:
                    self._pair(left, ast.Eq(), each)
            elif type(operator) not in _COMPARISONS:
                self.refuse(right, "this comparison is not known here", _GRAMMAR)
            else:
                self._pair(left, operator, right)
        return "truth"

    def _pair(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> None:
        texts = [node for node in (left, right) if _is_text(node)]
        if not texts:
            self.number(left)
            self.number(right)
            return
        column = right if texts[0] is left else left
        text = texts[0]
        assert isinstance(text, ast.Constant)  # noqa: S101 - it is a text
        if not isinstance(column, ast.Name):
            self.refuse(column, "a text is compared with a column only", 'such as disease == "flu"')
            return
        if self._name(column) == "unknown":
            return
        variable = self.frame.variables[_name(column, self.quoted)]
        if str(text.value) not in variable.spellings:
            known = "" if variable.quiet else nearest(str(text.value), list(variable.spellings))
            self.refuse(text, f"'{text.value!s}' is not a value of '{variable.name}'", known)
        elif not isinstance(operator, ast.Eq | ast.NotEq) and not variable.ordered:
            self.refuse(column, f"the values of '{variable.name}' have no order", "compare them with == or in")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List) else []


def _name(node: ast.Name, quoted: Mapping[int, str]) -> str:
    return quoted.get(node.col_offset, node.id)


def _unparsed(node: ast.expr, quoted: Mapping[int, str]) -> str:
    renamed = ast.parse(ast.unparse(node), mode="eval").body
    for old, new in zip(ast.walk(node), ast.walk(renamed)):
        if isinstance(old, ast.Name) and isinstance(new, ast.Name):
            new.id = _name(old, quoted)
    return ast.unparse(renamed)


def _numeric(node: ast.AST, quoted: Mapping[int, str]) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield _name(node, quoted)
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        texts = any(_is_text(each) or any(map(_is_text, _elements(each))) for each in sides)
        for each in [] if texts else sides:
            yield from _numeric(each, quoted)
    elif isinstance(node, ast.Call):
        for each in [] if isinstance(node.func, ast.Name) and node.func.id == "C" else node.args:
            yield from _numeric(each, quoted)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _numeric(child, quoted)


def parse_formula(text: str) -> tuple[Formula, list[Problem]]:
    """The formula, and what is wrong with its form; raises where there is nothing to look at."""
    _check_length(text, "formula")
    parser, tilde = _Parser(text, "formula"), _depth_zero(text, "~")
    if len(tilde) != 1:
        what = "no '~' between outcome and terms" if not tilde else "more than one '~'"
        place = f"formula, character {tilde[1] + 1}" if tilde else "formula"
        raise QuestionError(Problem(place, what, 'write it as "outcome ~ a + b"'))
    left, right = text[: tilde[0]], text[tilde[0] + 1 :]
    outcome = parser.expression(left, 0, "the outcome before '~' is missing")
    terms, intercept = parser.terms(right, tilde[0] + 1)
    if not terms and not intercept and not parser.problems:
        parser.refuse(tilde[0], "no term is left", "write y ~ 1 for the mean alone")
    if outcome is None:
        raise QuestionError(parser.problems)
    ordered = sorted(
        {frozenset(key): key for key in reversed(terms)}.values(), key=lambda key: (len(key), terms.index(key))
    )
    found = tuple(tuple(parser.known[key] for key in term) for term in ordered)
    return Formula(text, outcome, found, intercept), parser.problems


def parse_condition(text: str) -> Expression:
    """The condition of a filter."""
    _check_length(text, "where")
    parser = _Parser(text, "where")
    found = parser.expression(text, 0, "the condition is empty")
    if parser.problems or found is None:
        raise QuestionError(parser.problems)
    return found


def _check_length(text: Any, where: str) -> None:
    if not isinstance(text, str):
        raise QuestionError(Problem(where, f"expected a text, not {type(text).__name__}", 'such as "y ~ income + age"'))
    if len(text) > _LONGEST or max((text.count(sign) for sign in "(["), default=0) > _DEEPEST:
        raise QuestionError(
            Problem(where, f"longer than {_LONGEST:,} characters, or with more than {_DEEPEST} brackets")
        )


Key: TypeAlias = tuple[str, ...]


class _Parser:
    """Terms by hand, since R's operators are not Python's; expressions by Python's own parser."""

    def __init__(self, text: str, where: str) -> None:
        self.text, self.where = text, where
        self.problems: list[Problem] = []
        self.known: dict[str, Expression] = {}

    def refuse(self, place: int, what: str, hint: str = "") -> None:
        self.problems.append(Problem(f"{self.where}, character {place + 1}", what, hint))

    def terms(self, text: str, place: int) -> tuple[list[Key], bool]:
        """The products that are added, less those that are taken away."""
        found, intercept = list[Key](), True
        for sign, piece, start in _added(text):
            if not piece.strip():
                self.refuse(place + start, "a term is missing", "there is one on both sides of + and -")
                continue
            stripped = piece.strip()
            if stripped in ("0", "1"):
                intercept = (stripped == "1") == (sign == "+")
                continue
            more = self._crossed(piece, place + start)
            gone = {frozenset(key) for key in more}
            found = [*found, *more] if sign == "+" else [key for key in found if frozenset(key) not in gone]
        return found, intercept

    def _crossed(self, text: str, place: int) -> list[Key]:
        """`a*b` is `a + b + a:b`."""
        found: list[Key] = []
        for index, (piece, start) in enumerate(_split(text, "*")):
            more = self._product(piece, place + start)
            found = [*found, *more, *_joined(found, more)] if index else more
        return found

    def _product(self, text: str, place: int) -> list[Key]:
        found: list[Key] = []
        for index, (piece, start) in enumerate(_split(text, ":")):
            more = self._atom(piece, place + start)
            found = _joined(found, more) if index else more
        return found

    def _atom(self, text: str, place: int) -> list[Key]:
        stripped = text.strip()
        start = place + len(text) - len(text.lstrip())
        if not stripped:
            self.refuse(place, "a term is missing", "there is one on both sides of * and :")
            return []
        if stripped.startswith("(") and _closing(stripped) == len(stripped) - 1:
            return self.terms(stripped[1:-1], start + 1)[0]
        if stripped == ".":
            self.refuse(start, "'.' for all columns is not known here", "name the columns")
            return []
        expression = self.expression(text, place, "")
        if expression is None:
            return []
        if isinstance(expression.node, ast.BinOp):
            self.refuse(start, "arithmetic between columns stands in I( )", f"I({stripped}), or a*b for an interaction")
            return []
        if isinstance(expression.node, ast.Constant):
            self.refuse(start, "a constant is not a term", "the intercept is there unless you write - 1")
            return []
        self.known.setdefault(expression.text, expression)
        return [(expression.text,)]

    def expression(self, text: str, place: int, missing: str) -> Expression | None:
        """A piece of Python at its place."""
        stripped = text.strip()
        start = place + len(text) - len(text.lstrip())
        if not stripped:
            self.refuse(place, missing)
            return None
        plain, quoted = _without_backticks(stripped)
        try:
            node = ast.parse(plain, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            offset = getattr(error, "offset", None) or 1
            hint = "names that are no words stand in backticks: `marital status`; texts stand in quotes"
            self.refuse(start + min(max(offset, 1), len(stripped)) - 1, "this cannot be read", hint)
            return None
        for each in ast.walk(node):
            if hasattr(each, "col_offset"):
                each.col_offset = len(plain.encode()[: each.col_offset].decode(errors="ignore"))
        return Expression(node, start, quoted)


def _joined(left: Sequence[Key], right: Sequence[Key]) -> list[Key]:
    return [tuple(dict.fromkeys((*one, *other))) for one in left for other in right]


def _without_backticks(text: str) -> tuple[str, dict[int, str]]:
    """Names in backticks as words of the same length, and what they stand for by their place."""
    quoted: dict[int, str] = {}

    def word(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        quoted[found.start()] = found[1]
        return "_" * len(found[0])

    return re.sub(r"\"[^\"]*\"|'[^']*'|`([^`]+)`", word, text), quoted


def _depths(text: str) -> Iterator[tuple[int, str]]:
    """The characters outside of brackets and quotes, with their places."""
    depth, quote = 0, ""
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'`":
            quote = sign
        elif sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
        elif depth == 0:
            yield place, sign


def _depth_zero(text: str, wanted: str) -> list[int]:
    return [place for place, sign in _depths(text) if sign == wanted]


def _closing(text: str) -> int:
    """Where the bracket that opens the text is closed."""
    depth, quote = 0, ""
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'`":
            quote = sign
        elif sign in "([":
            depth += 1
        elif sign in ")]":
            depth -= 1
            if depth == 0:
                return place
    return -1


def _added(text: str) -> Iterator[tuple[str, str, int]]:
    """What stands between + and -: sign, text and place."""
    sign, start = "+", 0
    for place, found in _depths(text):
        if found not in "+-":
            continue
        before = text[start:place]
        if not before.strip() and not start and found:
            sign, start = found, place + 1
        elif not re.search(r"(?:[<>=!*/:,%]|\d[eE]|\b(?:and|or|not|in))\s*$", before):
            yield sign, before, start
            sign, start = found, place + 1
    yield sign, text[start:], start


def _split(text: str, wanted: str) -> list[tuple[str, int]]:
    """Pieces between single signs, with their places; `**` is not two of them."""
    cuts = [
        place
        for place in _depth_zero(text, wanted)
        if text[place + 1 : place + 2] != wanted and text[max(place - 1, 0) : place] != wanted
    ]
    starts = [0, *(cut + 1 for cut in cuts)]
    return [(text[start:end], start) for start, end in zip(starts, [*cuts, len(text)])]
