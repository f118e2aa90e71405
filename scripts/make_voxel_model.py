"""Writes models/voxel (SDF, its YAML, its scene) from params.yaml, or checks it.

python scripts/make_voxel_model.py            # write
python scripts/make_voxel_model.py --check    # exit 1 if a file would change
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from made_files import made_files

from drakebots.core.errors import DrakebotsError
from drakebots.model import package_root
from drakebots.robots.voxels.model import (
    walker_lattice,
    walker_scene,
    walker_sdf,
    walker_sidecar,
)


def texts(folder: Path) -> dict[Path, str]:
    """What the made files should hold, by path."""
    return {
        folder / "voxel.sdf": walker_sdf(),
        folder / "voxel.drakebots.yaml": walker_sidecar(),
        folder / "scene.dmd.yaml": walker_scene(),
        folder / "lattice.json": walker_lattice(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args(argv)
    try:
        return made_files(texts(package_root() / "voxel"), check=args.check)
    except DrakebotsError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
