"""Evaluates single definitions of vLLM's source, found with `ast`: no module of vLLM is imported, nor anything heavy.

A module is only parsed. When a name of it is asked for, the one top-level statement that defines the name is
compiled and run; names that this statement needs are looked up the same way. Packages that are neither vLLM's nor
the standard library's are stand-ins.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .standins import foreign


class Sources:
    """The unpacked source of one vLLM version; `overrides` maps "module:name" to the value to use instead."""

    def __init__(self, root: Path, overrides: Mapping[str, Any]) -> None:
        self.root = root
        self.overrides = overrides
        self._modules: dict[str, SlicedModule] = {}

    def module(self, name: str) -> SlicedModule | None:
        """The module with this dotted name, None when the version has no such file."""
        if name not in self._modules:
            base = self.root.joinpath(*name.split("."))
            for file in (base.with_suffix(".py"), base / "__init__.py"):
                if file.is_file():
                    self._modules[name] = sys.modules[name] = SlicedModule(self, name, file)  # dataclasses look there
                    break
            else:
                return None
        return self._modules[name]

    def get(self, module: str, name: str) -> Any:
        """The value of `name` in `module`; AttributeError without it."""
        found = self.module(module)
        if found is None:
            raise AttributeError(f"no module {module}")
        return getattr(found, name)


class _Builtins(dict[str, Any]):
    """The builtins of a sliced module: a name that is missing is looked up among the module's definitions."""

    def __init__(self, module: SlicedModule) -> None:
        super().__init__(vars(builtins))
        self.module = module
        self["__import__"] = module.import_

    def __missing__(self, name: str) -> Any:
        try:
            return self.module.resolve(name)
        except AttributeError as error:
            if name in self.module.definitions:
                raise RuntimeError(f"{self.module.__name__}:{name}: {error}") from error
            raise KeyError(name) from error


class SlicedModule(types.ModuleType):
    """One source file whose top-level names are evaluated when asked for."""

    def __init__(self, sources: Sources, name: str, file: Path) -> None:
        super().__init__(name)
        self.sources = sources
        self.package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        tree = ast.parse(file.read_text(encoding="utf-8"))
        self.tree = tree
        self.definitions: dict[str, ast.stmt] = {}
        self.stars: list[str] = []
        self.flags = 0
        for statement in _top_level(tree.body):
            self._note(statement)
        self.space: dict[str, Any] = {"__name__": name, "__file__": str(file)}
        self.space["__builtins__"] = _Builtins(self)

    def _note(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.ImportFrom):
            if statement.module == "__future__" and any(a.name == "annotations" for a in statement.names):
                self.flags = __future__.annotations.compiler_flag
            if statement.names[0].name == "*":
                self.stars.append(self._absolute(statement.module or "", statement.level))
        for name in _names(statement):
            self.definitions[name] = statement

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__", "__version_tuple__"):
            raise AttributeError(name)
        return self.resolve(name)

    def resolve(self, name: str) -> Any:
        """The value of a top-level name; AttributeError when the module defines none."""
        key = f"{self.__name__}:{name}"
        if key in self.sources.overrides:
            return self.sources.overrides[key]
        if name in self.space:
            return self.space[name]
        if name in self.definitions:
            return self._evaluate(name, self.definitions[name])
        submodule = self.sources.module(f"{self.__name__}.{name}") if self.package == self.__name__ else None
        if submodule is not None:
            return submodule
        for star in self.stars:
            try:
                return getattr(self.import_(star, fromlist=("*",)), name)
            except AttributeError:
                continue
        if "__getattr__" in self.definitions:
            return self.resolve("__getattr__")(name)
        raise AttributeError(f"{self.__name__} defines no {name}")

    def _evaluate(self, name: str, statement: ast.stmt) -> Any:
        if isinstance(statement, ast.ImportFrom):
            alias = next(a for a in statement.names if (a.asname or a.name) == name)
            target = self.import_(statement.module or "", fromlist=(alias.name,), level=statement.level)
            self.space[name] = getattr(target, alias.name)
        elif isinstance(statement, ast.Import):
            alias = next(a for a in statement.names if (a.asname or a.name.split(".")[0]) == name)
            self.space[name] = self.import_(alias.name, fromlist=("*",) if alias.asname else ())
        else:
            plain = _WithoutSignatureTypes().visit(statement)
            code = compile(ast.Module([plain], []), str(self.space["__file__"]), "exec", self.flags, True)
            exec(code, self.space)
        return self.space[name]

    def _absolute(self, name: str, level: int) -> str:
        if not level:
            return name
        parts = self.package.split(".")
        base = parts[: len(parts) - level + 1]
        return ".".join([*base, name] if name else base)

    def import_(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """Stands for `__import__` in the sliced code."""
        name = self._absolute(name, level)
        shown = name if fromlist else name.split(".")[0]
        if name.split(".")[0] != "vllm":
            return foreign(shown)
        found = self.sources.module(shown)
        return found if found is not None else foreign(shown)


class _WithoutSignatureTypes(ast.NodeTransformer):
    """Takes the annotations off functions: they name half of vLLM and no argument depends on them."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module as they would run: of `if TYPE_CHECKING` both parts, the one that runs last."""
    for statement in body:
        if isinstance(statement, ast.If):
            yield from _top_level(statement.body)
            yield from _top_level(statement.orelse)
        elif isinstance(statement, ast.Try):
            for handler in statement.handlers:
                yield from _top_level(handler.body)
            yield from _top_level(statement.body)
        elif isinstance(statement, ast.With):
            yield from _top_level(statement.body)
        else:
            yield statement


def _names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            yield name
        case ast.Import(names=names):
            yield from (a.asname or a.name.split(".")[0] for a in names)
        case ast.ImportFrom(names=names):
            yield from (a.asname or a.name for a in names if a.name != "*")


def attribute_docs(source: type, tree_of: Callable[[str], ast.Module | None]) -> dict[str, str]:
    """The string under each field of a class, as vLLM's own `get_attr_docs` gives them, base classes included."""
    docs: dict[str, str] = {}
    for cls in reversed(source.__mro__):
        tree = tree_of(cls.__module__)
        for node in ast.walk(tree) if tree else ():
            if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                docs |= _field_docs(node)
    return docs


def _field_docs(node: ast.ClassDef) -> dict[str, str]:
    docs = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign | ast.Assign) and isinstance(below, ast.Expr):
            target = field.target if isinstance(field, ast.AnnAssign) else field.targets[0]
            if isinstance(target, ast.Name) and isinstance(below.value, ast.Constant):
                docs[target.id] = str(below.value.value)
    return docs
