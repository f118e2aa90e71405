"""What an identification found: how sure it is, its result, its file, its picture."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.stats
import xarray as xr
import yaml

from drakebots.core.errors import DrakebotsWarning, InvalidInput
from drakebots.core.files import write_text
from drakebots.core.run import RunEnd, Verdict
from drakebots.formats import model_provenance
from drakebots.model import is_ours
from drakebots.plots import (
    COLOURS,
    check_ending,
    legend_below,
    literal,
    panels,
    write_figure,
)
from drakebots.results import Result, with_units

UNKNOWN = 0.5
"""Standard deviation, as a share of a parameter's scale, from which on the data does
not determine it."""

UNEXPLAINED, EXPLAINED = 0.6, 0.02
"""Correlation of residuals from sample to sample, and their share of the motion, above
which a fit has not explained the data."""

JOINED = 1e-2
"""Largest gap between segments, in units of the noise, of a fit that is one run."""


@dataclass(frozen=True)
class Estimate:
    """How sure the parameters x are.

    Attributes:
        std: standard deviations of x (n,).
        correlation: (n, n).
        quantile: of Student's t: the interval is x +- quantile std.
        rho: how far residuals repeat themselves; see :func:`repeated`.
        undetermined: parameters that the data leaves open, each with those it trades
            against.
    """

    std: np.ndarray
    correlation: np.ndarray
    quantile: float
    rho: float
    undetermined: dict[str, tuple[str, ...]]


def estimate(fit, confidence: float) -> Estimate:
    """How sure a fit's parameters are, from its Jacobian at the end.

    With J = [Jx, Js] of parameters and states, and Jx' the part of Jx across the
    columns of Js, the covariance is s^2 (Jx'^T Jx')^-1, s^2 the variance of the
    residuals, times (1 + rho) / (1 - rho) where they repeat themselves from sample to
    sample (the effective number of samples; Bayley and Hammersley 1946). A direction
    of Jx' whose own standard deviation is above :data:`UNKNOWN`, without the priors, is
    not determined.
    """
    if getattr(fit, "runs", None) is None:
        raise InvalidInput("the fit was cut short before its first step; run it longer")
    n, names = len(fit.x), [p.name for p in fit.parameters]
    J, r = (
        fit.jacobian(fit.x, fit.states, fit.runs),
        fit.residuals(fit.x, fit.states, fit.runs),
    )
    count = int(np.isfinite(fit.y).sum())
    freedom = max(1, count - n - fit.robot.plant.num_multibody_states())
    samples = r[: fit.y.size]
    rho = repeated(samples.reshape(fit.y.shape), fit.y)
    s = float(np.sqrt(samples @ samples / freedom * (1 + rho) / (1 - rho)))
    priors = len(fit.problem.prior)
    across = _across(J[: len(J) - priors], n)
    full = np.vstack([across, s * J[len(J) - priors :, :n]])
    _, values, V = np.linalg.svd(across, full_matrices=False)
    least = s / np.maximum(values, 1e-300)
    open_ = {}
    for direction in V[least > UNKNOWN]:
        part = [names[i] for i in np.flatnonzero(np.abs(direction) > 0.3)]
        open_ |= {name: tuple(o for o in part if o != name) for name in part}
    for name in fit.problem.prior:
        open_.pop(name, None)
    inverse = np.linalg.pinv(full.T @ full, rcond=1e-14, hermitian=True)
    std = s * np.sqrt(np.maximum(np.diag(inverse), 0.0))
    size = np.sqrt(np.maximum(np.diag(inverse), 1e-300))
    quantile = float(scipy.stats.t.ppf((1 + confidence) / 2, freedom))
    return Estimate(std, inverse / np.outer(size, size), quantile, rho, open_)


def repeated(residuals: np.ndarray, measured: np.ndarray) -> float:
    """Correlation of residuals (T, ny) from one sample to the next, 0 to 0.99.

    That of noise is 0; what a model does not explain repeats itself.
    """
    r = np.where(np.isfinite(measured), residuals, 0.0)
    square = float((r**2).sum())
    return float(np.clip((r[1:] * r[:-1]).sum() / max(square, 1e-300), 0.0, 0.99))


def _across(J: np.ndarray, n: int) -> np.ndarray:
    """The columns of the parameters, less what those of the states can do."""
    states = J[:, n:] / np.maximum(np.linalg.norm(J[:, n:], axis=0), 1e-300)
    U, values, _ = np.linalg.svd(states, full_matrices=False)
    U = U[:, values > 1e-9 * values[0]]
    return J[:, :n] - U @ (U.T @ J[:, :n])


def result_of(fit, end: RunEnd, found: Estimate, timings: dict) -> Result:
    """The result of an identification."""
    names = [p.name for p in fit.parameters]
    scale = np.array([p.scale for p in fit.parameters])
    value = scale * fit.x
    half = found.quantile * found.std * scale
    predicted = fit.predicted(fit.runs)
    gaps = [run[0][-1] - s for run, s in zip(fit.runs, fit.states[1:])]
    gap = max((float(np.abs(g / fit._gap_scale()).max()) for g in gaps), default=0.0)
    verdict, message = end.verdict, end.message
    if verdict is Verdict.SUCCESS and not fit.done:
        verdict, message = (
            Verdict.FAILED,
            "the fit has not converged; give it more data",
        )
    elif verdict is Verdict.SUCCESS and gap > JOINED:
        verdict = Verdict.FAILED
        message = f"segments do not join (by {gap:.2g} of the noise); shorten --segment"
    off = predicted[:, fit.rows] - fit.y
    rms = {n: float(np.sqrt(np.nanmean(o**2))) for n, o in zip(fit.names, off.T)}
    spread = np.maximum(np.nanstd(fit.y, axis=0), 1e-300)
    share = float(np.median(np.sqrt(np.nanmean(off**2, axis=0)) / spread))
    if verdict is Verdict.SUCCESS and found.rho > UNEXPLAINED and share > EXPLAINED:
        verdict = Verdict.FAILED
        message = (
            f"the model does not explain the data: what is left is {share:.1%} of the "
            f"motion and no noise (correlation {found.rho:.2f} from sample to sample); "
            "look at the picture, sample inputs more often, or fit more parameters"
        )
    if found.undetermined:
        why = [
            f"{name} (trades against {', '.join(others)})" if others else name
            for name, others in found.undetermined.items()
        ]
        text = (
            f"the data does not determine {'; '.join(why)}: fix it, or give a --prior"
        )
        warnings.warn(DrakebotsWarning(text), stacklevel=3)
        message += f"; {text}"
    known = [n not in found.undetermined for n in names]
    data = _dataset(fit, found, predicted, np.where(known, value, np.nan), half)
    parameters = {}
    for parameter, x, is_known in zip(fit.parameters, fit.x, known):
        if is_known:
            parameters |= {k: float(v) for k, v in parameter.values(x).items()}
    shown = {
        n: f"{v:.4g} +- {h:.2g} {u}".removesuffix(" 1") if k else "not determined"
        for n, v, h, u, k in zip(names, value, half, data.parameter_unit.values, known)
    }
    problem, model = fit.problem, fit.model
    options = {
        **{k: getattr(problem, k) for k in ("segment", "time_step", "confidence")},
        **{k: dict(getattr(problem, k)) for k in ("prior", "noise", "servo")},
        "fit": list(problem.fit),
    }
    return Result(
        kind="identification",
        model=model.name,
        verdict=verdict,
        message=message,
        data=data,
        residuals={f"rms {n} [{signal_unit(fit.robot, n)}]": x for n, x in rms.items()}
        | {"gap between segments [noise]": gap},
        timings=timings,
        metrics=shown
        | {
            "parameters": dict(model.parameters) | parameters,
            "undetermined": list(found.undetermined),
            "samples": int(np.isfinite(fit.y).sum()),
            "steps": end.steps,
            "residuals_repeat": found.rho,
        },
        provenance=model_provenance(model, options),
    )


def _dataset(fit, found: Estimate, predicted, value, half) -> xr.Dataset:
    """Signals and parameters; values are NaN where they are not determined."""
    names = [p.name for p in fit.parameters]
    start = np.array([p.scale * p.first for p in fit.parameters])
    return xr.Dataset(
        with_units(
            {
                "measured": (("time", "signal"), fit.y, _MIXED),
                "predicted": (("time", "signal"), predicted[:, fit.rows], _MIXED),
                "noise": (("signal",), fit.sigma, _MIXED),
                "value": (("parameter",), value, _OWN),
                "start": (("parameter",), start, _OWN),
                "low": (("parameter",), value - half, _OWN),
                "high": (("parameter",), value + half, _OWN),
                "correlation": (("parameter", "other"), found.correlation, "1"),
            }
        ),
        {
            "time": ("time", fit.time, {"units": "s"}),
            "signal": list(fit.names),
            "signal_unit": ("signal", [signal_unit(fit.robot, n) for n in fit.names]),
            "parameter": names,
            "parameter_unit": ("parameter", [p.unit for p in fit.parameters]),
            "other": names,
        },
    )


_MIXED, _OWN = "m or rad, and per s: see signal_unit", "see parameter_unit"


def signal_unit(robot, name: str) -> str:
    """The unit of a signal by its name."""
    kind, _, rest = name.partition(".")
    if kind in ("position", "velocity"):
        slides = robot.plant.GetJointByName(rest).type_name() == "prismatic"
        return ("m" if slides else "rad") + ("/s" if kind == "velocity" else "")
    return "rad" if kind == "base_rpy" else "m"


def write_parameters(result: Result, path: str | Path) -> Path:
    """Writes the found values as a YAML file that is named in place of the model.

    What the data does not determine keeps the model's value.

    Raises:
        FileProblem: when it cannot be written.
    """
    path = Path(path)
    source = Path(next(iter(result.provenance["files"])))
    model = (
        result.model
        if is_ours(source)
        else os.path.relpath(source, path.absolute().parent)
    )
    head = f"# Found by `drakebots identify`, {result.provenance['date']}; SI.\n"
    found = {"model": model, "parameters": dict(result.metrics["parameters"])}
    write_text(path, head + yaml.safe_dump(found, sort_keys=False))
    return path


def plot_identified(result: Result, path: str | Path) -> Path:
    """Draws every signal, measured and predicted, and the parameters' intervals.

    Raises:
        InvalidInput: for a result of another kind, or another ending.
        FileProblem: when the file cannot be written.
    """
    path = check_ending(path)
    if "predicted" not in result.data:
        raise InvalidInput(f"needs an identification, got a {result.kind}")
    data = result.data
    order = np.argsort(-np.nanstd(data.measured.values, axis=0))[:11]
    figure, axes = panels(len(order) + 1, 3, (4.2, 2.8))
    for axis, k in zip(axes, sorted(order)):
        t, name = data.time.values, str(data.signal.values[k])
        axis.plot(
            t, data.measured.values[:, k], ".", ms=3, color="0.6", label="measured"
        )
        axis.plot(
            t, data.predicted.values[:, k], color=COLOURS[0], lw=1.2, label="predicted"
        )
        axis.set(xlabel="time [s]", title=literal(name))
        axis.set_ylabel(f"[{data.signal_unit.values[k]}]")
    legend_below(axes[0])
    _panel_parameters(axes[-1], data)
    figure.suptitle(f"{literal(result.model)}: {literal(result.message)}", fontsize=9)
    return write_figure(figure, path)


def _panel_parameters(axis, data: xr.Dataset) -> None:
    """Each parameter's interval, and where it began, in units of its value."""
    for k in range(data.sizes["parameter"]):
        value, start = float(data.value[k]), float(data.start[k])
        unit = abs(value) if np.isfinite(value) and value else (abs(start) or 1.0)
        axis.plot(start / unit, k, "o", mfc="white", color="0.5")
        if np.isfinite(value):
            ends = [float(data.low[k]) / unit, float(data.high[k]) / unit]
            axis.plot(ends, [k, k], color=COLOURS[1], lw=2)
            axis.plot(value / unit, k, "|", color=COLOURS[1], ms=9)
    names = [literal(name) for name in data.parameter.values]
    axis.set_yticks(range(len(names)), names)
    axis.set(
        title="interval, and first guess (circle)", xlabel="share of the value found"
    )
