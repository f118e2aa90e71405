"""What an identification found: how sure it is, its result, its file, its picture."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import scipy.stats
import xarray as xr
import yaml

from drakebots.core.convert import as_yaml
from drakebots.core.errors import DrakebotsWarning, NoSolution
from drakebots.core.files import write_text
from drakebots.core.run import RunEnd, Verdict
from drakebots.core.stages import spent
from drakebots.formats import model_provenance
from drakebots.model import is_ours
from drakebots.plots import COLOURS, legend_below, literal, panels, save
from drakebots.results import Result, require, with_units

UNKNOWN = 0.5
"""Standard deviation, as a share of a parameter's scale, from which on the data does
not determine it."""

UNEXPLAINED, EXPLAINED = 0.3, 0.02
"""Correlation of residuals from sample to sample, and their share of the motion, above
which a fit has not explained the data."""

JOINED = 1e-2
"""Largest gap between segments, in units of the noise, of a fit that is one run."""


CONFIDENCE = 0.95
"""Probability that an interval shall hold the true value."""


class Estimate:
    """How sure a fit's parameters x are, from its Jacobian at the end.

    With J = [Jx, Js] of parameters and states, and Jx' the part of Jx across the
    columns of Js, the covariance is s^2 (Jx'^T Jx')^-1, s^2 the variance of the
    residuals, times (1 + rho) / (1 - rho) where they repeat themselves from sample to
    sample (the effective number of samples; Bayley and Hammersley 1946). What half the
    steps, and cubic splines between the inputs' samples, change of the residuals moves
    x; the square of that is added to its variance (Richardson's estimate). A direction
    of Jx' whose own standard deviation is above :data:`UNKNOWN`, without the priors, is
    not determined.

    Attributes:
        half: the intervals are x +- half (n,).
        steps: the part of it that steps and the lines between inputs account for.
        correlation: (n, n).
        rho: correlation of residuals from one sample to the next, 0 to 0.99. That of
            noise is 0; what a model does not explain repeats itself.
        undetermined: parameters that the data leaves open, each with those it trades
            against.
    """

    def __init__(self, fit):
        n, names, at = len(fit.x), [p.name for p in fit.parameters], (fit.x, fit.states)
        J, r = fit.jacobian(*at, fit.runs), fit.residuals(*at, fit.runs)
        try:
            finer = fit.residuals(*at, fit.run(*at, parts=2)) - r
        except NoSolution:  # of a step in contact: the intervals are not known
            finer = np.full_like(r, np.nan)
        freedom = max(1, np.isfinite(fit.y).sum() - n - fit.states.shape[1])
        samples = r[: fit.y.size].reshape(fit.y.shape)
        square = max(float((samples**2).sum()), 1e-300)
        rho = float(np.clip((samples[1:] * samples[:-1]).sum() / square, 0.0, 0.99))
        s = np.sqrt(square / freedom * (1 + rho) / (1 - rho))
        rows = len(J) - len(fit.problem.prior)
        across = _across(J[:rows], n)
        full = np.vstack([across, s * J[rows:, :n]])
        _, values, V = np.linalg.svd(across, full_matrices=False)
        open_ = {}
        for direction in V[s / np.maximum(values, 1e-300) > UNKNOWN]:
            part = [names[i] for i in np.flatnonzero(np.abs(direction) > 0.3)]
            open_ |= {name: tuple(o for o in part if o != name) for name in part}
        for name in fit.problem.prior:
            open_.pop(name, None)
        inverse = np.linalg.pinv(full.T @ full, rcond=1e-14, hermitian=True)
        size = np.sqrt(np.maximum(np.diag(inverse), 1e-300))
        quantile = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, freedom))
        steps = quantile * np.abs(inverse @ across.T @ finer[:rows])
        self.half, self.steps = np.hypot(quantile * s * size, steps), steps
        self.correlation = inverse / np.outer(size, size)
        self.rho, self.undetermined = rho, open_


def _across(J: np.ndarray, n: int) -> np.ndarray:
    """The columns of the parameters, less what those of the states can do."""
    states = J[:, n:] / np.maximum(np.linalg.norm(J[:, n:], axis=0), 1e-300)
    U, values, _ = np.linalg.svd(states, full_matrices=False)
    U = U[:, values > 1e-9 * values[0]]
    return J[:, :n] - U @ (U.T @ J[:, :n])


def result_of(fit, end: RunEnd) -> Result:
    """The result of an identification."""
    if fit.runs is None:
        raise NoSolution(f"identify: ended before its first step: {end.message}")
    found, problem, model = Estimate(fit), fit.problem, fit.model
    off = fit.predicted(fit.runs) - fit.y
    rms = np.sqrt(np.nanmean(off**2, axis=0))
    gaps = [run.states[-1] - s for run, s in zip(fit.runs, fit.states[1:])]
    gap = max((float(np.abs(g / fit.scale).max()) for g in gaps), default=0.0)
    verdict, message = _judged(fit, end, found, gap, rms)
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
    known = [p.name not in found.undetermined for p in fit.parameters]
    data = _dataset(fit, found, off + fit.y, known)
    parameters, shown = dict(model.parameters), {}
    for p, x, half, is_known in zip(fit.parameters, fit.x, found.half, known):
        shown[p.name] = "not determined"
        if is_known:
            parameters |= {k: float(v) for k, v in p.values(x).items()}
            text = f"{p.scale * x:.4g} +- {p.scale * half:.2g} {p.unit}"
            shown[p.name] = text.removesuffix(" 1")
    data_files = [] if isinstance(problem.data, Result) else [problem.data]
    residuals = {f"rms {n} [{u}]": x for n, u, x in zip(fit.names, fit.units, rms)}
    return Result(
        kind="identification",
        model=model.name,
        verdict=verdict,
        message=message,
        data=data,
        residuals=residuals | {"gap between segments [noise]": gap},
        timings=spent(),
        metrics=shown
        | {
            "parameters": parameters,
            "undetermined": list(found.undetermined),
            "samples": int(np.isfinite(fit.y).sum()),
            "steps": end.steps,
            "residuals_repeat": found.rho,
        },
        provenance=model_provenance(model, as_yaml(problem), files=data_files),
    )


def _judged(fit, end: RunEnd, found: Estimate, gap: float, rms) -> tuple[Verdict, str]:
    """The verdict of a fit that ended so, and why."""
    share = float(np.median(rms / np.maximum(np.nanstd(fit.y, axis=0), 1e-300)))
    if end.verdict is not Verdict.SUCCESS:
        return end.verdict, end.message
    if not fit.done:
        return Verdict.FAILED, "the fit has not converged; give it more data"
    if gap > JOINED:
        text = f"segments do not join (by {gap:.2g} of the noise); shorten --segment"
        return Verdict.FAILED, text
    if found.rho > UNEXPLAINED and share > EXPLAINED:
        return Verdict.FAILED, (
            f"the model does not explain the data: what is left is {share:.1%} of the "
            f"motion and no noise (correlation {found.rho:.2f} from sample to sample); "
            "look at the picture, sample inputs more often, or fit more parameters"
        )
    return end.verdict, end.message


def _dataset(fit, found: Estimate, predicted, known: list[bool]) -> xr.Dataset:
    """Signals and parameters; values are NaN where they are not determined."""
    scale = np.array([p.scale for p in fit.parameters])
    value, half = np.where(known, scale * fit.x, np.nan), scale * found.half
    start = scale * [p.first for p in fit.parameters]
    signals, names = ("time", "signal"), [p.name for p in fit.parameters]
    return xr.Dataset(
        with_units(
            {
                "measured": (signals, fit.y, _MIXED),
                "predicted": (signals, predicted, _MIXED),
                "value": ("parameter", value, _OWN),
                "start": ("parameter", start, _OWN),
                "low": ("parameter", value - half, _OWN),
                "high": ("parameter", value + half, _OWN),
                "steps": ("parameter", scale * found.steps, _OWN),
                "correlation": (("parameter", "other"), found.correlation, "1"),
            }
        ),
        {
            "time": ("time", fit.time, {"units": "s"}),
            "signal": list(fit.names),
            "signal_unit": ("signal", list(fit.units)),
            "parameter": names,
            "parameter_unit": ("parameter", [p.unit for p in fit.parameters]),
            "other": names,
        },
    )


_MIXED, _OWN = "m or rad, and per s: see signal_unit", "see parameter_unit"


def write_parameters(result: Result, path: str | Path) -> Path:
    """Writes the found values as a YAML file that is named in place of the model.

    What the data does not determine keeps the model's value. Of a fit that is no
    success the file says so at its top.

    Raises:
        FileProblem: when it cannot be written.
    """
    path = Path(path)
    source = Path(next(iter(result.provenance["files"])))
    beside = os.path.relpath(source, path.absolute().parent)
    model = result.model if is_ours(source) else beside
    head = f"# Found by `drakebots identify`, {result.provenance['date']}; SI.\n"
    if not result.ok:
        head += f"# NO SUCCESS ({result.verdict}): {result.message}\n"
    found = {"model": model, "parameters": dict(result.metrics["parameters"])}
    write_text(path, head + yaml.safe_dump(found, sort_keys=False))
    return path


def plot_identified(result: Result, path: str | Path) -> Path:
    """Draws every signal, measured and predicted, and the parameters' intervals.

    Raises:
        InvalidInput: for a result of another kind, or another ending.
        FileProblem: when the file cannot be written.
    """
    require(result.data, "predicted low", "identification")
    data = result.data
    order = np.argsort(-np.nanstd(data.measured.values, axis=0))[:11]
    figure, axes = panels(len(order) + 1, 3, (4.2, 2.8))
    for axis, k in zip(axes, sorted(order)):
        t, row = data.time.values, data.isel(signal=k)
        axis.plot(t, row.measured, ".", ms=3, color="0.6", label="measured")
        axis.plot(t, row.predicted, color=COLOURS[0], lw=1.2, label="predicted")
        axis.set(xlabel="time [s]", title=literal(row.signal.item()))
        axis.set_ylabel(f"[{row.signal_unit.item()}]")
    legend_below(axes[0])
    unit = np.abs(data.value.fillna(data.start).values)
    unit = np.where(unit > 0, unit, 1.0)
    places = range(len(unit))
    parts = data[["start", "low", "value", "high"]] / xr.Variable("parameter", unit)
    axes[-1].plot(parts.start, places, "o", mfc="white", color="0.5")
    axes[-1].hlines(places, parts.low, parts.high, color=COLOURS[1], lw=2)
    axes[-1].plot(parts.value, places, "|", color=COLOURS[1], ms=9)
    axes[-1].set_yticks(places, [literal(name) for name in data.parameter.values])
    title = "interval, and first guess (circle)"
    axes[-1].set(title=title, xlabel="share of the value found")
    figure.suptitle(f"{literal(result.model)}: {literal(result.message)}", fontsize=9)
    return save(figure, path)
