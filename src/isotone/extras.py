"""Extras: packages that some jobs need, and the one message about one that is not installed.

The advice names packages, because `isotone` itself is not on an index: ``pip install
'isotone[train]'`` would look for it there.
"""

from __future__ import annotations

PACKAGES = {
    "train": ("torch", "scikit-learn", "scipy"),
    "plot": ("matplotlib",),
    "root": ("uproot", "awkward", "xxhash"),
    "sweep": ("dask", "distributed"),
    "export": ("onnx", "onnxruntime"),
    "fpga": ("da4ml",),
    "sign": ("cryptography",),
}


def lacking(job: str, package: str, extra: str | None) -> str:
    """What to tell somebody whose job needs a package, which may be one of an extra.

    >>> lacking("`isotone.plot`", "matplotlib", "plot")
    "`isotone.plot` needs matplotlib, which is not installed; run: pip install matplotlib, or \
pip install '.[plot]' in a clone of isotone"
    """
    what = f"{job} needs {package}, which is not installed; run: pip install "
    if extra is None:
        return what + package
    packages = " ".join(PACKAGES[extra])
    return f"{what}{packages}, or pip install '.[{extra}]' in a clone of isotone"
