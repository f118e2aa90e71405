"""The face of a package, which imports a module only when a name of it is used.

The `__init__.py` of a package lists its public names as plain imports under
`if TYPE_CHECKING:`, where readers, type checkers and editors see them, and ends with

    __all__, __getattr__, __dir__ = lazy_face(__name__)

so that `import drakebots` and `drakebots --help` do not load Drake, CasADi, numba
and matplotlib (PEP 562). :func:`late` does the same for a package of others that few
calls need, `resolve("module:name")` for one object, and :func:`hide_dask` keeps xarray
from importing one that none needs.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pkgutil import resolve_name as resolve
from types import ModuleType
from typing import Any

_GUARD = "TYPE_CHECKING"


def lazy_face(
    package: str,
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`. Its public names, among them modules, are those that it
            imports under `if TYPE_CHECKING:`.

    Raises:
        TypeError: when it imports there in another form than `from x import y`.
    """
    module = sys.modules[package]
    source = module.__spec__.loader.get_source(package)  # type: ignore[union-attr]
    places = public_names(ast.parse(source))

    def __getattr__(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with _explained():
            value = _load(*places[name], package)
        vars(module)[name] = value
        return value

    public = sorted(places)
    module.__class__ = _Face
    vars(module)["_public"] = frozenset(public)
    return public, __getattr__, lambda: sorted({*vars(module), *public})


def late(name: str) -> Any:
    """A stand-in for a package of others, imported when something of it is used.

        trimesh = late("trimesh")

    For packages that take long to import and that most calls do not need, and for the
    planner behind a problem's method. scipy needs no stand-in: `import scipy` leaves
    its parts for later.
    """
    return _Late(name)


class _Late:
    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        with _explained():
            return getattr(importlib.import_module(self._name), name)


@contextmanager
def _explained() -> Iterator[None]:
    """Says in one line why a package of others cannot be imported, where that is known.

    What knows it is imported then only.
    """
    try:
        yield
    except ImportError as error:
        resolve("drakebots.core.installed:explain")(error)
        raise


def _load(home: str, name: str, package: str) -> Any:
    """A name of the module `home`: something it defines, or a module in it."""
    owner = importlib.import_module(home)
    if home != package and hasattr(owner, name):
        return getattr(owner, name)
    try:
        return importlib.import_module(f"{home}.{name}")
    except ModuleNotFoundError as error:
        if error.name not in (home, f"{home}.{name}"):
            raise  # that module exists, and imports something that does not
        raise AttributeError(
            f"the face of {package!r} lists {name!r}, which {home!r} does not have"
        ) from error


class _Face(ModuleType):
    """A package in which a function may have the name of the module it comes from.

    After importing `hamr/simulate.py` Python binds the module as `hamr.simulate`, where
    the face has the function.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in vars(self)["_public"]):
            super().__setattr__(name, value)


def public_names(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Public names, each with the module it comes from and its name there."""
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


def hide_dask() -> None:
    """Lets dask seem not installed, until :func:`show_dask`.

    Where it is installed, xarray imports it, which takes a second, to see that arrays
    are none of its own. A process of the command line has none.
    """
    sys.modules.setdefault("dask", None)  # type: ignore[arg-type]


def show_dask() -> None:
    """Lets what needs dask import it."""
    if sys.modules.get("dask", sys) is None:
        del sys.modules["dask"]
