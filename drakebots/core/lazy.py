"""Faces of rooms that import nothing until a name of theirs is used.

A room's `__init__.py` lists its public names as plain imports under
`if TYPE_CHECKING:`, where readers, type checkers and editors see them, and ends with

    __all__, __getattr__, __dir__ = lazy_face(__name__)

so that `import drakebots` and `drakebots --help` do not load Drake, CasADi, numba
and matplotlib (PEP 562).
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def lazy_face(
    package: str,
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`. Its public names are those it imports under
            `if TYPE_CHECKING:`.
    """
    module = sys.modules[package]
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    places = _public_names(ast.parse(source))

    def __getattr__(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, original = places[name]
        owner = importlib.import_module(home)
        try:
            value = getattr(owner, original)
        except AttributeError:  # a module: `from drakebots.robots import hamr`
            value = importlib.import_module(f"{home}.{original}")
        vars(module)[name] = value
        return value

    public = sorted(places)
    module.__class__ = _Face
    vars(module)["_public"] = frozenset(public)
    return public, __getattr__, lambda: sorted({*vars(module), *public})


class _Face(ModuleType):
    """A package whose function may have the name of the module it comes from.

    Importing `hamr/simulate.py` would bind the module as `hamr.simulate`, where the
    face has the function.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in vars(self)["_public"]):
            super().__setattr__(name, value)


def _public_names(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """By public name: the module it comes from, and its name there."""
    places: dict[str, tuple[str, str]] = {}
    for block in tree.body:
        if not (isinstance(block, ast.If) and ast.unparse(block.test) == _GUARD):
            continue
        for node in block.body:
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                raise TypeError("a face lists `from module import name` only")
            for entry in node.names:
                places[entry.asname or entry.name] = (node.module, entry.name)
    return places


_GUARD = "TYPE_CHECKING"
