"""drakebots: legged robots that ordinary simulators leave out, on Drake."""

from drakebots.core.errors import (
    DrakebotsError,
    FileProblem,
    InvalidInput,
    ModelProblem,
    NoSolution,
    ResultProblem,
    UnknownName,
)
from drakebots.model import Model, available_models, load
from drakebots.multibody import Ground, Robot, build_robot

__version__ = "0.1.0"

__all__ = [
    "DrakebotsError",
    "FileProblem",
    "Ground",
    "InvalidInput",
    "Model",
    "ModelProblem",
    "NoSolution",
    "ResultProblem",
    "Robot",
    "UnknownName",
    "__version__",
    "available_models",
    "build_robot",
    "load",
]
