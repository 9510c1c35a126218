"""What else could score a row: each contestant as a function of rows, one thread, no gradients."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import lightgbm
import lleaves
import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import xgboost
from numpy.typing import NDArray
from torch import Tensor, nn

import isotone
from bench.authors import authors_network
from isotone import export

Array = NDArray[Any]
Scorer = Callable[[Array], object]

N_LEAVES = 25
RATE = 0.05
SAMPLE = Path(__file__).parents[2] / "studies" / "trigger" / "small"
DIRECTIONS = {"ln_min_ip_chi2": 1, "sum_pt": 1, "ln_fd_chi2": 1, "vertex_chi2": 0}


@dataclass(frozen=True)
class Shape:
    """A network by its widths and what it sorts: pairs, or all units if `group_size` is None."""

    widths: tuple[int, ...]
    group_size: int | None = None

    def __str__(self) -> str:
        sort = "full sort" if self.group_size is None else f"groups of {self.group_size}"
        return f"{list(self.widths)}, {sort}"

    @property
    def n_products(self) -> int:
        """Multiply-adds per event, the residual included."""
        return sum(a * b for a, b in pairwise(self.widths)) + self.widths[0]


# ---- rows ---------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def candidates() -> tuple[Array, Array, Array]:
    """Candidates of the trigger study, standardized; which are signal; which trees learn from."""
    tables = [pq.read_table(SAMPLE / f"{name}.parquet") for name in ("collisions", "signal")]
    is_signal = np.repeat([0.0, 1.0], [len(table) for table in tables]).astype(np.float32)
    table = pa.concat_tables(tables)
    X = np.stack([table[name].to_numpy() for name in DIRECTIONS], axis=1)
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    return X, is_signal, table["collision"].to_numpy() % 4 != 0


def draw(n_rows: int, n_features: int) -> Array:
    """Rows to score: candidates that no tree has learned from, drawn again and again; normal
    numbers if there are more features than candidates have."""
    rng = np.random.default_rng(0)
    if n_features > len(DIRECTIONS):
        return rng.normal(size=(n_rows, n_features)).astype(np.float32)
    X, _, is_known = candidates()
    return np.ascontiguousarray(X[rng.choice(np.flatnonzero(~is_known), n_rows), :n_features])


def training_table(n_features: int) -> tuple[Array, Array]:
    X, is_signal, is_known = candidates()
    return np.ascontiguousarray(X[is_known, :n_features]), is_signal[is_known]


# ---- ours ---------------------------------------------------------------------------------


def our_network(shape: Shape) -> isotone.MonotonicNetwork:
    torch.manual_seed(0)
    return isotone.MonotonicNetwork(
        list(shape.widths), monotonic_cst=[1] * shape.widths[0], group_size=shape.group_size
    )


def engine(shape: Shape, precision: Any, isa: str = "", threads: int = 1) -> Scorer:
    frozen = isotone.freeze(our_network(shape), precision=precision)
    return isotone.Engine(frozen, isa=isa, threads=threads)


# ---- the same network elsewhere -----------------------------------------------------------


def onnx_runtime(shape: Shape, sort: str) -> Scorer:
    frozen = isotone.freeze(our_network(shape), precision="float32")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.onnx"
        export.write(frozen, "onnx", path, check=False, sort=sort, sums="matmul")
        session = onnxruntime.InferenceSession(path.read_bytes(), options)
    return lambda X: session.run(None, {"X": X})


class PlainTorch(nn.Module):
    """Dense layers with fixed weights, `torch.sort` between them, and the residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.dense = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(shape.widths))
        self.group_size = shape.group_size

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for i, layer in enumerate(self.dense):
            if i > 0:
                size = self.group_size or h.shape[1]
                h = h.view(len(h), -1, size).sort(dim=-1).values.view(len(h), -1)
            h = layer(h)
        return h[:, 0] + x.sum(dim=1)


def inferring(module: Any) -> Scorer:
    def score(X: Array) -> object:
        with torch.inference_mode():
            return module(torch.from_numpy(X))

    return score


def torch_eager(shape: Shape) -> Scorer:
    return inferring(PlainTorch(shape).eval())


def torch_compiled(shape: Shape) -> Scorer:
    return inferring(torch.compile(PlainTorch(shape).eval()))


def authors(shape: Shape) -> Scorer:
    return inferring(authors_network(shape.widths, shape.group_size).eval())


# ---- trees --------------------------------------------------------------------------------
# With the directions of the trigger, as whoever needs monotone scores would train them. Of four
# features LightGBM then grows deep trees, which take longer than those without directions. Of two
# there is soon nothing left to split: it stops before 1000, and most trees have fewer leaves.


def lightgbm_model(n_features: int, n_trees: int, monotone: bool = True) -> lightgbm.Booster:
    X, y = training_table(n_features)
    options: dict[str, Any] = {
        "objective": "binary",
        "num_leaves": N_LEAVES,
        "learning_rate": RATE,
        "num_threads": 1,
        "verbose": -1,
    }
    if monotone:
        options["monotone_constraints"] = list(DIRECTIONS.values())[:n_features]
        options["monotone_constraints_method"] = "intermediate"
    return lightgbm.train(options, lightgbm.Dataset(X, y), n_trees)


def lightgbm_trees(n_features: int, n_trees: int, monotone: bool = True) -> Scorer:
    model = lightgbm_model(n_features, n_trees, monotone)
    return lambda X: model.predict(X, raw_score=True, num_threads=1)


def lleaves_trees(n_features: int, n_trees: int) -> Scorer:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.txt"
        lightgbm_model(n_features, n_trees).save_model(path)
        model = lleaves.Model(model_file=str(path))
        model.compile()
    return lambda X: model.predict(X, n_jobs=1)


def xgboost_trees(n_features: int, n_trees: int) -> Scorer:
    options = {
        "objective": "binary:logistic",
        "grow_policy": "lossguide",
        "max_leaves": N_LEAVES,
        "max_depth": 0,
        "learning_rate": RATE,
        "tree_method": "hist",
        "monotone_constraints": tuple(DIRECTIONS.values())[:n_features],
        "nthread": 1,
    }
    X, y = training_table(n_features)
    model = xgboost.train(options, xgboost.DMatrix(X, y), n_trees)
    return lambda rows: model.inplace_predict(rows, predict_type="margin")
