"""Writes models/hamr (SDF, its YAML, meshes) from params.yaml, or checks it.

python scripts/make_hamr_model.py            # write
python scripts/make_hamr_model.py --check    # exit 1 if a file would change
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from made_files import made_files
from tools.hamr_visuals.draw import hamr_visuals, mesh_texts
from tools.hamr_visuals.parameters import HamrParameters
from tools.hamr_visuals.sdf import hamr_sdf, hamr_sidecar

from drakebots.cli.output import one_line_errors
from drakebots.model import package_root


def texts(folder: Path) -> dict[Path, str]:
    """Contents of the files made from `folder`/params.yaml, by path."""
    table = HamrParameters(folder)
    files = {
        folder / "hamr.sdf": hamr_sdf(table, hamr_visuals(table)),
        folder / "hamr.drakebots.yaml": hamr_sidecar(table),
    }
    for name, text in mesh_texts(table).items():
        files[folder / "meshes" / name] = text
    return files


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument(
        "--folder", type=Path, default=package_root() / "hamr", help="with params.yaml"
    )
    args = parser.parse_args(argv)
    files = texts(args.folder)
    stray = set((args.folder / "meshes").glob("*.obj")) - set(files)
    return made_files(files, check=args.check, stray=stray)


if __name__ == "__main__":
    with one_line_errors("make_hamr_model"):
        sys.exit(main())
