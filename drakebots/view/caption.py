"""What a page says beside its scene: what its colours mean, and the motion's time.

stage.caption.add(RED, "foot that carries load")
stage.caption.start, stage.caption.slow = 0.0, 5.0
page = stage.caption.on(page)
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field

from pydrake.geometry import Rgba

from drakebots.core.errors import InvalidInput

_STYLE = """
<style>
  #caption { position: fixed; left: 24px; top: 24px; padding: 12px 16px;
    font: 14px/1.4 system-ui, "DejaVu Sans", sans-serif; color: #222;
    background: rgba(255, 255, 255, 0.82); border-radius: 6px;
    pointer-events: none; }
  #caption .mark { display: inline-block; width: 12px; height: 12px;
    border-radius: 6px; margin-right: 8px; vertical-align: -1px; }
  #caption .more { font-size: 13px; color: #555; }
</style>
"""

# At its end the animator rewinds its actions without drawing them: what is drawn then
# is the moment its scrubber shows. Every way to move in time ends in a drawing.
_CLOCK = """
<script>
(function () {
  const about = @ABOUT@, animator = viewer.animator, seek = animator.seek;
  animator.seek = function (time) { animator.time = time; seek.call(animator, time); };
  window.drakebots_clock = function () {
    const time = animator.actions.reduce((t, a) => Math.max(t, a.time), 0);
    return time === 0 && !animator.playing ? animator.time : time;
  };
  const shown = document.getElementById("caption-time"), render = viewer.render;
  viewer.render = function () {
    const time = about.start + window.drakebots_clock() / about.slow;
    shown.textContent = "t = " + time.toFixed(about.digits) + " s" + about.pace;
    return render.apply(viewer, arguments);
  };
  viewer.set_dirty();
})();
</script>
"""


@dataclass
class Caption:
    """What is said of a scene on its page.

    Attributes:
        notes: what each colour means.
        start: the motion's time at the beginning of the recording [s]; None without
            a recording.
        slow: how many times slower than real it plays.
    """

    notes: dict[str, Rgba] = field(default_factory=dict)
    start: float | None = None
    slow: float = 1.0

    def add(self, colour: Rgba, meaning: str) -> None:
        """Says what a colour means."""
        self.notes[meaning] = colour

    def on(self, page: str, first: str = "") -> str:
        """A page of Meshcat's with the caption on it.

        Args:
            page: text of Meshcat.StaticHtml.
            first: HTML that stands above.

        Raises:
            InvalidInput: for a page that is none.
        """
        if "</body>" not in page or "</head>" not in page:
            raise InvalidInput("the page is not one of Meshcat's")
        lines = [first] if first else []
        lines += [
            f'<div><span class="mark" style="background: {_css(colour)}"></span>'
            f"{html.escape(meaning)}</div>"
            for meaning, colour in self.notes.items()
        ]
        script = ""
        if self.start is not None:
            lines.append('<div class="more" id="caption-time"></div>')
            script = _CLOCK.replace("@ABOUT@", json.dumps(self._clock(self.start)))
        if not lines:
            return page
        body = f'<div id="caption">{"".join(lines)}</div>{script}'
        head, _, rest = page.partition("</head>")
        rest, _, tail = rest.rpartition("</body>")
        return f"{head}{_STYLE}</head>{rest}{body}</body>{tail}"

    def _clock(self, start: float) -> dict[str, float | int | str]:
        pace = "" if abs(self.slow - 1) < 1e-3 else f", {self.slow:.3g} times slower"
        if self.slow < 1 - 1e-3:
            pace = f", {1 / self.slow:.3g} times faster"
        digits = 2 if self.slow <= 5 else 3
        return {"start": start, "slow": self.slow, "digits": digits, "pace": pace}


def _css(colour: Rgba) -> str:
    parts = (colour.r(), colour.g(), colour.b())
    return f"rgb({', '.join(str(round(255 * part)) for part in parts)})"
