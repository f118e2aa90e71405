"""Answers do not depend on what memory held before."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.scripts import find_script, load_script

poisoned = load_script("poisoned")
MINUTES = (
    *("plan:hamr", "plan:quads", "plan:gecko"),
    *("step:beetle", "step:cow", "step:lizard", "step:monster"),
)
"""Items that take half a minute and more in all."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=getattr(pytest.mark, "slow" if n in MINUTES else "long"))
        for n in poisoned.ITEMS
    ],
)
def test_the_same_answer_in_any_memory(name, tmp_path):
    assert poisoned.compare(name, tmp_path) == ""


BROKEN = """
import sys
sys.argv[0] = {script!r}
sys.path.insert(0, {folder!r})
import runpy, numpy as np
module = runpy.run_path({script!r})
def unwritten():
    yield np.empty(40)
def of_c():
    import ctypes
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    yield np.frombuffer((ctypes.c_char * 256).from_address(libc.malloc(256)))
module["ITEMS"].update(unwritten=unwritten, of_c=of_c)
module["main"](sys.argv[1:])
"""


@pytest.mark.long
@pytest.mark.parametrize("name, fills", [("unwritten", "numpy"), ("of_c", "8")])
def test_unwritten_memory_is_seen(name, fills, tmp_path, monkeypatch):
    """An array that nobody writes, NumPy's and C's."""
    broken = tmp_path / "broken.py"
    script = find_script("poisoned.py")
    broken.write_text(BROKEN.format(script=str(script), folder=str(script.parent)))
    monkeypatch.setattr(poisoned, "__file__", str(broken))
    plain, said = poisoned.answers(name, "none", tmp_path)
    assert said == "" and len(plain) == 1
    filled, said = poisoned.answers(name, fills, tmp_path)
    assert said == "" and not np.array_equal(plain["0"], filled["0"])
    assert f"{fills}: differs in ['0']" in poisoned.compare(name, tmp_path)
