"""Sliders and buttons that a gamepad works."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydrake.geometry import Meshcat

from drakebots.live import Button, Panel, Slider
from drakebots.live.panel import DEAD
from tests.helpers.scripts import load_script

Person, find_browser = load_script("robot_zoo.person", "Person", "find_browser")


@given(
    st.floats(-3, 3),
    st.floats(0.1, 3),
    st.floats(0, 1),
    st.floats(-1, 1),
    st.booleans(),
)
def test_a_stick_reaches_from_end_to_end(low, width, share, far, turned):
    """At rest it is the first value; pushed half way, nearly half way to an end."""
    high = low + width
    start = min(high, low + share * width)
    slider = Slider("ahead", low, high, start, stick=-2 if turned else 2)
    up = -1.0 if turned else 1.0
    assert slider.pushed(up) == pytest.approx(high)
    assert slider.pushed(-up) == pytest.approx(low)
    assert slider.pushed(DEAD) == slider.pushed(-DEAD) == start
    assert low - 1e-9 <= slider.pushed(far) <= high + 1e-9
    assert (slider.pushed(far) - start) * far * up >= 0


@pytest.mark.parametrize(
    "low, high, value", [(1, 80, 10), (-2.7, 0.4, -1), (0, 3e-3, 1e-3)]
)
def test_a_page_shows_the_value_that_acts(low, high, value):
    """Meshcat shows whole multiples of a step only, which is therefore round."""
    slider, meshcat = Slider("frequency", low, high, value), Meshcat()
    panel = Panel([slider], meshcat)
    assert meshcat.GetSliderValue("frequency") == pytest.approx(
        panel.values["frequency"]
    )
    assert 0.4 < 100 * slider.smallest / (high - low) < 1.001


@pytest.mark.long
@pytest.mark.skipif(find_browser() is None, reason="needs a browser")
def test_a_gamepad_at_the_browser():
    """The page's own code reads one that the test holds; keys and sliders still work,
    and nothing moves when it is taken away at rest."""
    meshcat, clicks = Meshcat(), []
    controls = [
        Slider("ahead", -2, 2, stick=-2),
        Slider("turn", -1, 1),
        Button("push", act=clicks.append, pad=13),
    ]
    panel = Panel(controls, meshcat)
    assert panel.poll(0.0) == []

    def hold(person, y: float = 0.0, pressed: float = 0.0, there: bool = True):
        buttons = [{"value": pressed if k == 12 else 0.0} for k in range(17)]
        pad = {"connected": there, "index": 0, "axes": [0, y, 0, 0], "buttons": buttons}
        person.value(f"navigator.getGamepads = () => [{json.dumps(pad)}]; 0")

    def polled(count: int = 1) -> list[tuple[str, float]]:
        found, until = [], time.monotonic() + 20
        while len(found) < count and time.monotonic() < until:
            found += [(event.control, event.value) for event in panel.poll(1.0)]
            time.sleep(5e-3)
        return found

    with Person(meshcat.web_url(), (200, 150)) as person:
        person.wait("'ahead' in viewer.gui_controllers")
        hold(person, y=-1.0)
        assert polled() == [("ahead", 2.0)] and panel.values["ahead"] == 2.0
        person.wait(f"{person.control('ahead')}.getValue() == 2")
        hold(person, y=-1.0, pressed=1.0)
        assert polled() == [("push", 1.0)] and clicks == [1.0]
        hold(person, pressed=1.0)  # still pressed: no second click
        assert polled() == [("ahead", 0.0)] and clicks == [1.0]
        person.slide("ahead", 1.0)  # by hand, while the stick is at rest
        assert polled() == [("ahead", 1.0)]
        hold(person, there=False)
        person.slide("turn", 0.5)
        assert polled() == [("turn", 0.5)] and panel.values["ahead"] == 1.0
    assert panel.poll(2.0) == []


@pytest.mark.skipif(find_browser() is None, reason="needs a browser")
def test_a_key_without_a_code_presses_nothing():
    """As those of tablets; payload and terrain have no key either."""
    controls, meshcat = [Slider("payload", 0, 1), Button("kick")], Meshcat()
    panel = Panel([*controls, Slider("ahead", 0, 1, keys=("", "W"))], meshcat)
    with Person(meshcat.web_url(), (200, 150)) as person:
        person.control("ahead")
        for code in ("", "KeyW"):  # the second one comes later
            for kind in ("keyDown", "keyUp"):
                asked = {"type": kind, "key": "w", "code": code}
                person._ask("Input.dispatchKeyEvent", **asked)
        until, found = time.monotonic() + 20, []
        while not found and time.monotonic() < until:
            found = panel.poll(0.0)
    assert [event.control for event in found] == ["ahead"]
