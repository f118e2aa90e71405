"""Fig. 13: the monster trots at 0.45 m/s, with the skin planned for and without.

python scripts/papers/quads/quad_trot.py -o out
python scripts/papers/quads/quad_trot.py -o out --quick
"""

from __future__ import annotations

from collections.abc import Sequence

from quad_figures import trot_figure
from quad_table import main as run_experiment
from quad_trots import trot


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the experiment; prints a table and one JSON object, and returns it."""
    return run_experiment(__doc__, "monster", trot, trot_figure, argv)


if __name__ == "__main__":
    main()
