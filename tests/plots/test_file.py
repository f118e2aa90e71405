"""Figures come out in the format their file names, whole or not at all."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from drakebots.core.errors import FileProblem, InvalidInput
from drakebots.plots import draw_lines, save


def drawn() -> Figure:
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([0, 1], [0, 1])
    return figure


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.png", b"\x89PNG"),
        ("a.PNG", b"\x89PNG"),
        ("a.pdf", b"%PDF"),
        ("a.svg", b"<?"),
    ],
)
def test_format_is_the_endings(tmp_path, name, start):
    path = save(drawn(), tmp_path / name)
    assert path.read_bytes().startswith(start)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_what_cannot_be_written(tmp_path):
    for name in ("a.txt", "a", "a.png.gz"):
        with pytest.raises(InvalidInput, match="ends in"):
            save(drawn(), tmp_path / name)
    with pytest.raises(FileProblem):
        save(drawn(), tmp_path / "none" / "a.png")
    assert not list(tmp_path.iterdir())


def test_lines_have_names_and_differ():
    """Columns over one abscissa or one each; a name of the user's is shown as it is."""
    values, names = np.arange(6.0).reshape(3, 2), ("_a", "$b")
    for x in (np.arange(3.0), -values):
        axes = Figure().subplots()
        draw_lines(axes, x, values, names, lw=0.5)
        lines = axes.get_lines()
        assert [line.get_label() for line in lines] == [" _a", r"\$b"]
        assert lines[0].get_color() != lines[1].get_color()
        for k, line in enumerate(lines):
            assert np.array_equal(line.get_ydata(), values[:, k])
            assert np.array_equal(line.get_xdata(), x if x.ndim == 1 else x[:, k])
