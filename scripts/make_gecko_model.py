"""Writes models/gecko (SDF, its YAML, its scene) from params.yaml, or checks it.

python scripts/make_gecko_model.py            # write
python scripts/make_gecko_model.py --check    # exit 1 if a file would change
python scripts/make_gecko_model.py --size large --sdf large.sdf   # another robot
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from made_files import made_files

from drakebots.core.errors import DrakebotsError
from drakebots.model import package_root
from drakebots.robots.gecko.model import gecko, gecko_scene, gecko_sdf, gecko_sidecar


def texts(folder: Path) -> dict[Path, str]:
    """What the made files should hold, by path."""
    return {
        folder / "gecko.sdf": gecko_sdf(gecko()),
        folder / "gecko.drakebots.yaml": gecko_sidecar(),
        folder / "scene.dmd.yaml": gecko_scene(),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--size", default="small", help="for --sdf")
    parser.add_argument("--segments", type=int, default=None, help="for --sdf")
    parser.add_argument("--sdf", type=Path, default=None, help="write only this SDF")
    args = parser.parse_args(argv)
    try:
        if args.sdf is not None:
            files = {args.sdf: gecko_sdf(gecko(args.size), args.segments)}
        else:
            files = texts(package_root() / "gecko")
        return made_files(files, check=args.check)
    except DrakebotsError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
