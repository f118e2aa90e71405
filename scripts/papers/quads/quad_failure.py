"""Failure case: the monster of twice the mass; does another footfall repair it?

python scripts/papers/quads/quad_failure.py -o out
python scripts/papers/quads/quad_failure.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from quad_failures import failure
from quad_figures import failure_figure
from quad_table import main as run_experiment


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "monster", failure, failure_figure, argv)


if __name__ == "__main__":
    main()
