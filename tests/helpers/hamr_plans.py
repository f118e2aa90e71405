"""The plans of HAMR that came with drakebots, each as a checkpoint of its program.

`scripts/papers/hamr/hamr_gaits.py` and `scripts/papers/hamr/hamr_jump.py` found them.
"""

from __future__ import annotations

from pathlib import Path

from drakebots.model import package_root


def stored_plans() -> list[str]:
    """Their names: "10hz_card", ..., "jump"."""
    return sorted(path.stem for path in _folder().glob("*.npz"))


def stored_plan(name: str) -> Path:
    """The checkpoint of a plan by its name."""
    return _folder() / f"{name}.npz"


def _folder() -> Path:
    return package_root() / "hamr" / "plans"
