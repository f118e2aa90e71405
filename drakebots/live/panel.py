"""The controls of a page: sliders and buttons with keys, and what came of them.

panel = Panel([Slider("ahead", -1, 1, unit="m/s", keys="SW", stick=-2)], meshcat)
for event in panel.poll(time):
    print(event.control, panel.values["ahead"])

A gamepad at the browser works them too; its axes and buttons are numbered from 1 in the
order of the W3C's standard gamepad: axes 1 and 2 are the left stick's, to the right and
down, 3 and 4 the right stick's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydrake.geometry import Meshcat

from drakebots.core.errors import InvalidInput, check_names
from drakebots.live.script import Event
from drakebots.view import round_distance

STEPS = 100
"""Number of steps of a slider's range, where no step is given."""

NO_KEY = "none"
"""Code of controls without a key; keys of screens and of players say an empty one."""

DEAD = 0.1
"""Deflection of a gamepad's stick, of 1, up to which it is at rest."""


@dataclass(frozen=True)
class Button:
    """A button on the page.

    Attributes:
        name: of the control, unique on its page.
        keys: the key that presses it: "R", or JavaScript's code, ["Space"].
        act: called with 1 at every click.
        pad: number of the gamepad's button that presses it, 0 for none.
    """

    name: str
    keys: Sequence[str] = ()
    act: Callable[[float], object] | None = None
    pad: int = 0
    unit, low, high, to = "", 1.0, 1.0, None


@dataclass(frozen=True)
class Slider:
    """A number that is set on the page.

    Attributes:
        name: of the control, unique on its page.
        low, high: its range.
        value: at the beginning.
        step: the smallest change; a hundredth of the range or less by default. A page
            shows its whole multiples.
        unit: shown beside the name.
        keys: keys that lower and raise it by a step: "SW", or JavaScript's codes
            ("ArrowDown", "ArrowUp").
        act: called with every new value.
        to: what takes the value in :func:`~drakebots.live.live`: an input port, (port,
            index) of a longer one, or (object, "field").
        stick: number of the gamepad's axis that moves it from its first value to its
            ends, negative for one that raises it the other way; 0 for none.
    """

    name: str
    low: float
    high: float
    value: float = 0.0
    step: float | None = None
    unit: str = ""
    keys: Sequence[str] = ("", "")
    act: Callable[[float], object] | None = None
    to: Any = None
    stick: int = 0

    def __post_init__(self):
        if not self.low <= self.value <= self.high or self.low == self.high:
            raise InvalidInput(
                f"slider {self.name}: needs low < high and a value between them, got "
                f"{self.low:g}, {self.high:g} and {self.value:g}"
            )

    @property
    def smallest(self) -> float:
        """Its step."""
        if self.step is not None:
            return self.step
        # Round, so that a page can show round values.
        return round_distance((self.high - self.low) / STEPS)

    def pushed(self, deflection: float) -> float:
        """Its value when its stick is pushed so far, -1 to 1."""
        far = max(0.0, (abs(deflection) - DEAD) / (1 - DEAD))
        end = self.high if (deflection > 0) == (self.stick > 0) else self.low
        return self.value + far * (end - self.value)


def _label(control: Slider | Button) -> str:
    """The text on the page: name, unit and keys."""
    keys = " ".join(key.removeprefix("Arrow") for key in control.keys if key)
    unit = f" [{control.unit}]" if control.unit else ""
    return f"{control.name}{unit}" + (f" ({keys})" if keys else "")


def _set_field(control: Slider | Button, value: float | None) -> None:
    """Sets the field that a slider is bound to, if it is."""
    if isinstance(control.to, tuple) and isinstance(control.to[1], str):
        setattr(*control.to, value)


class Panel:
    """Controls on the page of a Meshcat server, or of none, and a script that acts.

    Args:
        controls: sliders and buttons.
        meshcat: the server; None for a run without a page.
        script: events that act as if somebody made them.

    Attributes:
        values: of the sliders by name.
        events: all that happened, in order.

    Raises:
        InvalidInput: for two controls of one name, and a value out of range.
        UnknownName: for a control of the script that is not there.
    """

    def __init__(
        self,
        controls: Sequence[Slider | Button],
        meshcat: Meshcat | None = None,
        script: Iterable[Event] = (),
    ):
        self._controls = {control.name: control for control in controls}
        if len(self._controls) < len(controls):
            raise InvalidInput("two controls of a page have the same name")
        self.values = {c.name: c.value for c in controls if isinstance(c, Slider)}
        self.events: list[Event] = []
        self._labels = {name: _label(c) for name, c in self._controls.items()}
        self._meshcat, self._seen = meshcat, dict.fromkeys(self._controls, 0.0)
        self._pad = dict.fromkeys(self._controls, 0.0)
        self._said = ""
        self._script = deque(sorted(script, key=lambda event: event.time))
        for event in self._script:
            self._check(event)
        for control in controls:
            _set_field(control, self.values.get(control.name))
        for control in controls if meshcat is not None else ():
            keys = [key or NO_KEY for key in control.keys or [""]]
            codes = [f"Key{k}" if len(k) == 1 else k for k in keys]
            label, room = self._labels[control.name], [control.low, control.high]
            if isinstance(control, Button):
                meshcat.AddButton(label, *codes)
                continue
            room += [control.smallest, control.value]
            self._seen[control.name] = meshcat.AddSlider(label, *room, *codes)

    def _check(self, event: Event) -> None:
        name, value = event.control, event.value
        check_names("control", [name], self._controls)
        low, high = self._controls[name].low, self._controls[name].high
        if not low - 1e-9 <= value <= high + 1e-9:
            raise InvalidInput(f"{name} = {value:g} is not within {low:g}..{high:g}")

    def show(self, name: str, value: float) -> None:
        """Sets a slider, without an event."""
        self.values[name] = value
        if self._meshcat is not None:
            self._seen[name] = self._meshcat.SetSliderValue(self._labels[name], value)

    def say(self, text: str) -> None:
        """Says something on a button of the page; "" says nothing any more."""
        if self._meshcat is None or text == self._said:
            return
        if self._said:
            self._meshcat.DeleteButton(self._said)
        self._said = text
        if text:
            self._meshcat.AddButton(text, NO_KEY)

    def poll(self, time: float) -> list[Event]:
        """What was asked for since the last call, up to a time [s]."""
        found = []
        while self._script and self._script[0].time <= time + 1e-9:
            found.append(replace(self._script.popleft(), time=time))
            if found[-1].control in self.values:
                self.show(found[-1].control, found[-1].value)
        if self._meshcat is not None:
            found += self._clicked(time) + self._played(time)
        for event in found:
            control = self._controls[event.control]
            if control.act is not None:
                control.act(event.value)
            _set_field(control, event.value)
        self.events += found
        return found

    def _clicked(self, time: float) -> list[Event]:
        """What mouse and keys ask for."""
        found = []
        for name, control in self._controls.items():
            label, seen = self._labels[name], self._seen[name]
            if isinstance(control, Button):
                self._seen[name] = self._meshcat.GetButtonClicks(label)
                found += [Event(time, name, 1.0)] * int(self._seen[name] - seen)
            elif (value := self._meshcat.GetSliderValue(label)) != seen:
                self._seen[name] = self.values[name] = value
                found.append(Event(time, name, value))
        return found

    def _played(self, time: float) -> list[Event]:
        """What a gamepad asks for: sticks that moved and buttons that went down."""
        pad, found = self._meshcat.GetGamepad(), []
        for name, control in self._controls.items():
            slides = isinstance(control, Slider)
            number = abs(control.stick) if slides else control.pad
            # Without a gamepad there are no values.
            values = [0.0, *(pad.axes if slides else pad.button_values)]
            before = self._pad[name]
            now = self._pad[name] = values[number] if number < len(values) else 0.0
            if slides and (value := control.pushed(now)) != control.pushed(before):
                self.show(name, value)
                found.append(Event(time, name, value))
            elif not slides and now > 0.5 >= before:
                found.append(Event(time, name, 1.0))
        return found
