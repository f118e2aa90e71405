"""The packages and the two compiled parts; everything else stands in pyproject.toml.

The models/ folder at the top travels in the wheel as drakebots/_models, which
`packages.find` in pyproject.toml cannot say. kkt.c and its two neighbours are a plain
library that IPOPT loads, blas.c one that MUMPS finds its BLAS in; they are optional, so
that drakebots installs without a C compiler, plans with MUMPS and solves skins with a
slower BLAS. Neither knows Python, so one wheel of a platform serves every Python; one
that was built without a compiler serves every platform.
A wheel has a stub beside every face, which type checkers need: in a typed package they
take a name that an `__init__.py` imports for private unless `__all__` spells it.
"""

import ast
from pathlib import Path

from setuptools import Extension, find_namespace_packages, find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py


class BuildWithStubs(build_py):
    """Also writes `__init__.pyi` beside every face."""

    def run(self):
        super().run()
        if not self.editable_mode:
            for face in Path(self.build_lib).glob("drakebots/**/__init__.py"):
                source = face.read_text()
                if "lazy_face(__name__)" in source:
                    face.with_suffix(".pyi").write_text(stub(source))


class BuildPlain(build_ext):
    """Names C parts without Python's version, `_kkt.so`, for `core/installed.py`."""

    def get_ext_filename(self, fullname):
        return fullname.replace(".", "/") + ".so"


class AnyPython(bdist_wheel):
    """Tags a wheel for its platform, or for all where nothing was compiled."""

    def get_tag(self):
        compiled = any(Path(self.bdist_dir).glob("**/*.so"))
        return "py3", "none", super().get_tag()[2] if compiled else "any"


def stub(source: str) -> str:
    """What a face shows: the imports for type checkers, and its own constants."""
    lines, public = [], []
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            lines += map(ast.unparse, node.body)
            names = (name for entry in node.body for name in entry.names)
            public += [name.asname or name.name for name in names]
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            lines.append(ast.unparse(node))
    return "\n".join([*lines, f"__all__ = {public}", ""])


KKT = ("kkt", "embed", "ma27")

folders = find_namespace_packages("models")
models = ["drakebots._models", *(f"drakebots._models.{name}" for name in folders)]

setup(
    cmdclass={
        "build_py": BuildWithStubs,
        "build_ext": BuildPlain,
        "bdist_wheel": AnyPython,
    },
    packages=[*find_packages(include=["drakebots*"]), *models],
    ext_modules=[
        Extension(
            "drakebots.trajopt.solvers._kkt",
            [f"drakebots/trajopt/solvers/{part}.c" for part in KKT],
            depends=["drakebots/trajopt/solvers/kkt.h"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
        Extension(
            "drakebots.fem.solver._blas",
            ["drakebots/fem/solver/blas.c"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
    ],
)
