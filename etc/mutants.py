"""Small faults for a module: one operator, constant or statement of one function changed at a time.

In: the source of a module. Out: `Mutant`s: which function, what it was, what it became, and the code that it has
then. Pure. Words for people (docstrings, the texts of errors) and annotations are left alone.
"""

import ast
from collections.abc import Iterator
from types import CodeType

import msgspec

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_RECKONED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Edit = tuple[ast.AST, str, int | None, object]
_MOST = 70


class Mutant(msgspec.Struct, frozen=True):
    """One fault. `name`: the function's qualified name; `code` what it runs instead.

    `first` and `last`: the lines of the statement that is changed; of one that holds others, its head.
    """

    name: str
    first: int
    last: int
    before: str
    after: str
    code: CodeType

    @property
    def title(self) -> str:
        """Return what tells this mutant from others of its module, to a reader and across small edits."""
        return f"{self.name}: {self.before} → {self.after}".replace("|", "¦")  # a table's own sign


def mutants(source: str, path: str) -> Iterator[Mutant]:
    """Yield every mutant of a module's functions, in the order of the source."""
    tree = ast.parse(source)
    for name, function in _functions(tree, ""):
        holders = _statements(function)
        for edit in _inside(function):
            before, after = _told(edit)
            first, last = _lines(holders[id(_changed(edit))])
            there = _apply(edit)
            code = _code_of(compile(tree, path, "exec"), name, function)
            _apply((*edit[:3], there))
            if code is not None:
                yield Mutant(name, first, last, before, after, code)


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Function]]:
    """Yield functions and methods with their qualified names; functions inside functions belong to those."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield prefix + child.name, child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _statements(function: _Function) -> dict[int, ast.stmt]:
    """Return the innermost statement of each node of a function, by the node's id."""
    found: dict[int, ast.stmt] = {}
    for statement in ast.walk(function):  # the outer ones first
        if isinstance(statement, ast.stmt):
            found |= {id(node): statement for node in ast.walk(statement)}
    return found


def _lines(statement: ast.stmt) -> tuple[int, int]:
    """Return the first and the last line of a statement's own: without the body that it holds."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return statement.lineno, max(statement.lineno, last)


def _changed(edit: _Edit) -> ast.AST:
    """Return the node that an edit replaces, or whose operator it does."""
    holder, field, at, new = edit
    if isinstance(new, ast.operator | ast.cmpop | ast.boolop):
        return holder
    found: ast.AST = getattr(holder, field) if at is None else getattr(holder, field)[at]
    return found


def _inside(node: ast.AST) -> Iterator[_Edit]:
    """Yield the edits of all below a node."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "args", "returns", "decorator_list"} and isinstance(
            node, _Function | ast.AnnAssign
        ):
            continue
        for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST):
                yield from ((node, field, at, new) for new in _instead(child, node))
                if not _is_words(child):
                    yield from _own(child)
                    yield from _inside(child)


def _is_words(node: ast.AST) -> bool:
    """Say whether a node is a docstring, or what an error says."""
    if isinstance(node, ast.Raise):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _own(node: ast.AST) -> Iterator[_Edit]:
    """Yield the edits of a node's own operators."""
    match node:
        case ast.Compare():
            for at, op in enumerate(node.ops):
                if (other := _COMPARED.get(type(op))) is not None:
                    yield node, "ops", at, other()
        case ast.BoolOp():
            yield node, "op", None, ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.BinOp() | ast.AugAssign():
            if (op_ := _RECKONED.get(type(node.op))) is not None:
                yield node, "op", None, op_()


def _instead(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in a node's place."""
    match node:
        case ast.Constant(value=value) if not isinstance(parent, ast.JoinedStr | ast.Expr):
            yield from _constants(value)
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            yield inner
        case ast.If(test=test):
            yield ast.If(ast.UnaryOp(ast.Not(), test), node.body, node.orelse)
        case ast.IfExp(body=body, orelse=orelse):
            yield ast.IfExp(ast.Constant(True), body, orelse)
            yield ast.IfExp(ast.Constant(False), body, orelse)
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Raise():
            yield ast.Pass()


def _constants(value: object) -> Iterator[ast.AST]:
    match value:
        case bool():
            yield ast.Constant(not value)
        case int():
            yield ast.Constant(value + 1)
        case str():
            yield ast.Constant(f"{value}X")
        case bytes():
            yield ast.Constant(value + b"X")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _apply(edit: _Edit) -> object:
    """Put an edit's node in its place; return what was there."""
    holder, field, at, new = edit
    if at is None:
        old = getattr(holder, field)
        setattr(holder, field, new)
    else:
        old, getattr(holder, field)[at] = getattr(holder, field)[at], new
    ast.fix_missing_locations(holder)
    return old


def _told(edit: _Edit) -> tuple[str, str]:
    """Return an edit as source, before and after."""
    holder, field, at, new = edit
    old = getattr(holder, field) if at is None else getattr(holder, field)[at]
    if not isinstance(new, ast.operator | ast.cmpop | ast.boolop):
        return _short(old), _short(new)
    before = _short(holder)
    _apply(edit)
    after = _short(holder)
    _apply((holder, field, at, old))
    return before, after


def _short(node: object) -> str:
    text = " ".join(ast.unparse(node).split()) if isinstance(node, ast.AST) else repr(node)
    return text if len(text) <= _MOST else text[:_MOST] + "…"


def _code_of(code: CodeType, name: str, function: _Function) -> CodeType | None:
    """Return a function's code inside a module's."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_qualname == name and inner.co_name == function.name:
                return inner
            if (found := _code_of(inner, name, function)) is not None:
                return found
    return None
