"""The packages and the two compiled parts; everything else stands in pyproject.toml.

The models/ folder at the top travels in the wheel as drakebots/_models, which
`packages.find` in pyproject.toml cannot say. kkt.c is a plain library that IPOPT loads,
blas.c one that MUMPS finds its BLAS in; they are optional, so that drakebots installs
without a C compiler, plans with MUMPS and solves skins with a slower BLAS.
"""

from setuptools import Extension, find_packages, setup

setup(
    packages=[*find_packages(include=["drakebots*"]), "drakebots._models"],
    ext_modules=[
        Extension(
            "drakebots.trajopt.solvers._kkt",
            ["drakebots/trajopt/solvers/kkt.c"],
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
