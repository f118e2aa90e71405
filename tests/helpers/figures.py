"""Whether what is written beside the data of a figure covers none of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox


@contextmanager
def drawn_figures() -> Iterator[list[Figure]]:
    """The figures that are written to files meanwhile."""
    figures: list[Figure] = []
    save = Figure.savefig

    def keep(figure: Figure, *args, **options):
        figures.append(figure)
        return save(figure, *args, **options)

    Figure.savefig = keep
    try:
        yield figures
    finally:
        Figure.savefig = save


def check_legends(figure: Figure) -> int:
    """Asserts that legends overlap no axes, label, title or other legend.

    Returns:
        The number of legends.
    """
    figure.draw_without_rendering()
    axes = [a for a in figure.axes if a.get_visible()]
    legends = [a.get_legend() for a in axes if a.get_legend()] + figure.legends
    boxes = [legend.get_window_extent() for legend in legends]
    for k, box in enumerate(boxes):
        assert figure.bbox.padded(1).containsx(box.x0), "a legend is cut"
        assert figure.bbox.padded(1).containsy(box.y0), "a legend is cut"
        others = boxes[:k] + [b for a in axes for b in _taken(a)]
        for other in others:
            shared = Bbox.intersection(box, other)
            # A pixel is rounding.
            small = shared is None or min(shared.width, shared.height) < 1
            assert small, f"{legends[k].get_texts()} covers {other}"
    return len(boxes)


def _taken(axes: Axes) -> list[Bbox]:
    """Boxes of the data of axes, and of their labels and title."""
    texts = [axes.xaxis.label, axes.yaxis.label, axes.title]
    texts += [*axes.get_xticklabels(), *axes.get_yticklabels()]
    words = [text.get_window_extent() for text in texts if text.get_text()]
    return [axes.get_window_extent(), *words]
