"""The plans that came with drakebots, to start from or to check again.

Each is the decision variables of a program (a checkpoint, see
:mod:`drakebots.trajopt.checkpoint`), found by `scripts/hamr_gaits.py` and
`scripts/hamr_jump.py`.
"""

from __future__ import annotations

from pathlib import Path

from drakebots.errors import UnknownName
from drakebots.models import package_root


def plans_folder() -> Path:
    """Where they are."""
    return package_root() / "hamr" / "plans"


def stored_plans() -> list[str]:
    """Their names: "10hz_card", ..., "jump"."""
    return sorted(path.stem for path in plans_folder().glob("*.npz"))


def stored_plan(name: str) -> Path:
    """The checkpoint of a plan by its name.

    Raises:
        UnknownName: listing the names.
    """
    if name not in stored_plans():
        raise UnknownName("stored plan", name, stored_plans())
    return plans_folder() / f"{name}.npz"
