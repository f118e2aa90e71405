"""Figs. 11, 20: the COP of the trot before and after the skin is planned for.

python scripts/papers/quads/quad_cop.py -o out
python scripts/papers/quads/quad_cop.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from quad_figures import cop_figure
from quad_table import main as run_experiment
from quad_trots import cop


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "monster", cop, cop_figure, argv)


if __name__ == "__main__":
    main()
