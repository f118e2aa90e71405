"""What kernels must not do, that Numba does not say."""

import ast
from pathlib import Path

import drakebots

SOURCES = sorted(Path(drakebots.__file__).parent.rglob("*.py"))


def test_compiled_generators_are_not_cached():
    """Numba lowers a call of a generator by its body, which its cache does not hold:
    what uses one and is to be compiled fails with a KeyError where another process
    has compiled the generator."""
    generators = [
        (source.name, f.name, [ast.unparse(each) for each in f.decorator_list])
        for source in SOURCES
        for f in ast.walk(ast.parse(source.read_text()))
        if isinstance(f, ast.FunctionDef)
        and any(ast.unparse(each).startswith("njit") for each in f.decorator_list)
        and any(isinstance(part, ast.Yield) for part in ast.walk(f))
    ]
    assert generators, "none is left: this test may go"
    for source, name, decorators in generators:
        assert decorators == ["njit"], (source, name)
