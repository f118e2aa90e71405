"""One labelled result for every simulation and plan, and its file.

    result = simulate(...)                 # a frozen Result
    print(result.summary())
    result.save("trot.nc")                 # one netCDF-4 file, checksummed
    same = load_result("trot.nc")          # equal to `result`
    result.to_csv("trot.csv")

The file opens in anything that reads netCDF-4 or HDF5, e.g.
`xarray.open_dataset("trot.nc")`; see :mod:`drakebots.results.container`.
"""

from drakebots.core.files import check_output
from drakebots.core.run import Verdict
from drakebots.results.container import FORMAT_VERSION
from drakebots.results.origin import provenance
from drakebots.results.result import Result, load_result

__all__ = [
    "FORMAT_VERSION",
    "Result",
    "Verdict",
    "check_output",
    "load_result",
    "provenance",
]
