"""What scripts that measure print last."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info

from tests.helpers.scripts import last_json, load_script

measurement = load_script("measurement")
Measurement = measurement.Measurement


def test_a_measurement_says_where_it_was_made(capsys, monkeypatch):
    """The load, the processor, the kernel and the threads of BLAS."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    made = Measurement("What is measured.\n\nMore.", quick="one round")
    assert made.parse_args(["--quick"]).quick
    found = made.report({"step_s": float("nan")})
    assert last_json(capsys.readouterr().out) == found | {"step_s": None}
    where = found["environment"]
    assert where["processor"] and where["cores"] >= 1 and where["wall_s"] > 0
    assert where["threads"]["OMP"] == "3" and where["OPENBLAS_CORETYPE"] == "Haswell"
    loaded = [x for x in threadpool_info() if x["internal_api"] == "openblas"]
    kernels = [x["kernel"] for x in where["blas"] if x["library"] == "openblas"]
    assert kernels == [x["architecture"] for x in loaded] and kernels


@pytest.mark.parametrize(
    ("seconds", "load", "beside"),
    [((5.0, 5.0), 0.0, False), ((5.0, 1e3), 0.0, True), ((None, None), 1.4, True)],
)
def test_a_measurement_beside_other_work_says_so(
    capsys, monkeypatch, seconds, load, beside
):
    """By the processor time of others meanwhile, else by the load before."""
    others = iter(seconds)
    monkeypatch.setattr(measurement, "_others_seconds", lambda: next(others))
    monkeypatch.setattr(measurement.os, "getloadavg", lambda: (load, 0.0, 0.0))
    where = Measurement("What is measured.", quick="one").report({})["environment"]
    assert where["beside_other_work"] == beside
    assert ("beside other work" in capsys.readouterr().out) == beside
    assert (where["other_busy_cores"] is None) == (seconds[0] is None)


def test_help_has_the_whole_docstring(capsys):
    with pytest.raises(SystemExit) as ended:
        Measurement("A title.\n\n    python x.py  # all", "2 cases").parse_args(["-h"])
    assert not ended.value.code
    said = capsys.readouterr().out
    assert "A title." in said and "python x.py  # all" in said and "2 cases" in said
