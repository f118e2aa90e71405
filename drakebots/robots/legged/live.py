"""Any model in the browser while it runs: posed by hand."""

from __future__ import annotations

from pathlib import Path

from drakebots.core.fields import checked
from drakebots.core.run import Progress
from drakebots.formats import load
from drakebots.live import Live, pose_by_hand
from drakebots.model import Model
from drakebots.results import Result


@checked("live")
class Drive(Live):
    """Any model, posed by hand."""

    model: str | Path | Model
    """The model: a name, a path, or a loaded model."""


def drive(problem: Drive, *, progress: Progress | None = None) -> Result:
    """Runs a model in real time until Ctrl-C or `duration`; returns the record.

    Raises:
        UnknownName, ModelProblem: for a model that cannot be loaded.
        InvalidInput: for a port that is taken, and a bad script.
    """
    model = problem.model
    model = model if isinstance(model, Model) else load(model)
    return pose_by_hand(problem, model, progress=progress)
