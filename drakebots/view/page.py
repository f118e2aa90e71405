"""What stands on a scene's page: the meaning of its colours, the motion's time.

stage.caption.add(RED, "foot that carries load")
stage.caption.start, stage.caption.slow = 0.0, 5.0
page = stage.caption.on(page)
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydrake.geometry import Rgba

from drakebots.core.errors import InvalidInput
from drakebots.core.lazy import late

matplotlib = late("matplotlib")


@dataclass(frozen=True)
class ColourScale:
    """Colours of values from 0 to `top`; what lies beyond has those of the ends.

    Attributes:
        quantity: what the values are, e.g. "von Mises stress".
        top: upper end of the scale (SI).
        unit: of the numbers drawn, e.g. "kPa".
        unit_size: one unit (SI).
        colours: matplotlib's colour map, or its name.
        note: text below the scale.
    """

    quantity: str
    top: float
    unit: str
    unit_size: float
    colours: Any
    note: str = ""

    @property
    def label(self) -> str:
        """E.g. "von Mises stress [kPa]"."""
        return f"{self.quantity} [{self.unit}]"

    @property
    def ticks(self) -> tuple[float, ...]:
        """Numbers on the scale, in `unit`, from 0 on."""
        return tuple(np.linspace(0.0, self.top / self.unit_size, 6).tolist())

    def fraction(self, values: np.ndarray) -> np.ndarray:
        """Fractions of the scale (0..1) of values in SI."""
        return np.clip(np.asarray(values, float) / self.top, 0.0, 1.0)

    def rgb(self, values: np.ndarray) -> np.ndarray:
        """sRGB colours (..., 3) within 0..1, of values in SI."""
        return self._map(self.fraction(values))[..., :3]

    def palette(self, count: int = 256) -> np.ndarray:
        """The scale's colours from bottom to top (count, 3) in sRGB."""
        return self._map(np.linspace(0.0, 1.0, count))[:, :3]

    @property
    def _map(self) -> Any:
        return matplotlib.colormaps.get_cmap(self.colours)

    def html(self) -> str:
        """The scale with its numbers."""
        stops = ", ".join(map(_css, 255 * self.palette(17)))
        ticks = "".join(f"<span>{tick:.4g}</span>" for tick in self.ticks)
        note = f'<div class="more">{html.escape(self.note)}</div>' if self.note else ""
        return (
            f'<div id="scale"><div>{html.escape(self.label)}</div>'
            f'<div class="bar" style="background: linear-gradient(to right, {stops})">'
            f'</div><div class="ticks">{ticks}</div>{note}</div>'
        )


def linear_rgb(srgb: np.ndarray) -> np.ndarray:
    """Linear colours of sRGB; three.js takes those of vertices as linear."""
    srgb = np.asarray(srgb, float)
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _css(rgb: Any) -> str:
    """A colour of three numbers within 0..255."""
    return f"rgb({', '.join(str(round(float(part))) for part in rgb)})"


@dataclass
class Caption:
    """Caption of a scene on its page.

    Attributes:
        notes: meaning of each colour.
        start: the motion's time at the beginning of the recording [s]; None without
            a recording.
        slow: factor by which it plays slower than real time.
        scale: scale of colours that stand for numbers, if there are any.
    """

    notes: dict[str, Rgba] = field(default_factory=dict)
    start: float | None = None
    slow: float = 1.0
    scale: ColourScale | None = None

    def add(self, colour: Rgba, meaning: str) -> None:
        """Says what a colour means."""
        self.notes[meaning] = colour

    def on(self, page: str) -> str:
        """A page of Meshcat's with the caption on it.

        Args:
            page: text of Meshcat.StaticHtml.

        Raises:
            InvalidInput: for a page that is none.
        """
        lines = [] if self.scale is None else [self.scale.html()]
        for meaning, colour in self.notes.items():
            rgb = _css([255 * part for part in (colour.r(), colour.g(), colour.b())])
            mark = f'<span class="mark" style="background: {rgb}"></span>'
            lines.append(f"<div>{mark}{html.escape(meaning)}</div>")
        script = ""
        if self.start is not None:
            lines.append('<div class="more" id="caption-time"></div>')
            about = json.dumps(self._clock(self.start))
            script = _part("clock.html").replace("@ABOUT@", about)
        if not lines:
            return page
        text = f'<div id="caption">{"".join(lines)}</div>'
        return at_end(page, _part("caption.html") + text + script)

    def _clock(self, start: float) -> dict[str, float | int | str]:
        pace = "" if abs(self.slow - 1) < 1e-3 else f", {self.slow:.3g} times slower"
        if self.slow < 1 - 1e-3:
            pace = f", {1 / self.slow:.3g} times faster"
        digits = 2 if self.slow <= 5 else 3
        return {"start": start, "slow": self.slow, "digits": digits, "pace": pace}


def at_end(page: str, more: str) -> str:
    """A page of Meshcat's with more HTML at its end.

    Raises:
        InvalidInput: for a page that is none.
    """
    body, end, tail = page.rpartition("</body>")
    if not end:
        raise InvalidInput("the page is not one of Meshcat's")
    return f"{body}{more}{end}{tail}"


def _part(name: str) -> str:
    """The text of a file beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
