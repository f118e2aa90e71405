"""The packages of the wheel; everything else stands in pyproject.toml.

The models/ folder at the top travels in the wheel as drakebots/_models, which
`packages.find` in pyproject.toml cannot say.
"""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["drakebots*"]), "drakebots._models"])
