"""When an alternation stops, and what it then says."""

from types import SimpleNamespace

import pytest

from drakebots.core.run import Verdict
from drakebots.robots.quads.alternate import _judge
from drakebots.robots.quads.alternation import Stage


def stages(*differences):
    """Passes that came through with a difference; None for one that fell."""
    made = []
    for one in differences:
        ok = one is not None
        frames = SimpleNamespace(
            ok=ok,
            verdict=Verdict.SUCCESS if ok else Verdict.FAILED,
            message="" if ok else "fell",
        )
        made.append(Stage(None, frames, [0.0], one if ok else float("nan")))
    return made


@pytest.mark.parametrize(
    ("differences", "least", "verdict", "said"),
    [
        ((0.01,), 1, Verdict.SUCCESS, "difference 0.01 after 1 iteration"),
        ((0.03,), 1, Verdict.FAILED, "above the tolerance of 0.02"),
        # Made though the first was near enough; the second leads away from it.
        ((0.01,), 2, Verdict.FAILED, "difference 0.01 after 1 iteration"),
        ((0.01, 0.03), 2, Verdict.SUCCESS, "after 2 iterations, that of iteration 1"),
        ((0.01, None), 2, Verdict.SUCCESS, "that of iteration 1"),
        ((0.03, 0.01), 2, Verdict.SUCCESS, "difference 0.01 after 2 iterations"),
        ((0.03, None), 1, Verdict.FAILED, "fell"),
        ((None,), 1, Verdict.FAILED, "fell"),
    ],
)
def test_the_best_pass_decides(differences, least, verdict, said):
    problem = SimpleNamespace(tolerance=0.02, min_iterations=least, time_limit=None)
    found, message = _judge(problem, stages(*differences))
    assert found is verdict and said in message
