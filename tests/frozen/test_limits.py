"""One table of limits: at each the network works, one beyond it every door is closed at once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

import isotone
from isotone import (
    Engine,
    FrozenNetwork,
    GroupSort,
    LipschitzConv2d,
    LipschitzLinear,
    LipschitzNetwork,
    MonotonicNetwork,
    Residual,
    Scaling,
    _engine,
    certify,
    export,
    freeze,
    limits,
    load,
)
from isotone.export.claim import claim
from isotone.export.json import Json, read, to_dict
from isotone.frozen import modelfile, reference
from isotone.frozen.steps import Dense, Pointwise, Sort, Step, residual_block
from isotone.training.fused import FusedTrainer
from networks import content_of, small
from programs import root


def frozen(steps: tuple[Step, ...], n_features: int = 1, n_outputs: int = 1) -> FrozenNetwork:
    return FrozenNetwork(
        features=tuple(f"x{i}" for i in range(n_features)),
        scaling=Scaling.identity(n_features),
        steps=steps,
        residual=np.zeros((n_outputs, n_features)),
        lipschitz=np.full(n_features, 1e9),
        monotonic_cst=np.zeros((n_outputs, n_features), np.int8),
    )


def dense(n_out: int, n_in: int) -> Dense:
    weight = np.random.default_rng(n_out).normal(size=(n_out, n_in)) / n_in
    return Dense(weight, np.linspace(-1, 1, n_out))


def wide(n: int, group_size: int) -> FrozenNetwork:
    return frozen((dense(n, 1), Sort(group_size), dense(1, n)))


def nested(depth: int) -> FrozenNetwork:
    step: Step = Pointwise("abs")
    for _ in range(depth):
        step = residual_block(0.5, 0.5, (step, Pointwise("leaky_relu", 0.5)))
    return frozen((step, dense(1, 1)))


def long(n: int) -> FrozenNetwork:
    return frozen((*[Pointwise("leaky_relu", -0.5)] * (n - 1), dense(1, 1)))


def shaped(n_features: int, n_outputs: int) -> FrozenNetwork:
    return frozen((dense(1, n_features), dense(n_outputs, 1)), n_features, n_outputs)


# name of the limit: how to make a network of that size, and a size that is just beyond it
NETWORKS: dict[str, tuple[Callable[[int], FrozenNetwork], int | None]] = {
    "GROUP": (lambda n: wide(n, n), None),
    "WIDTH": (lambda n: wide(n, 1), None),
    "STEPS": (long, None),
    "DEPTH": (nested, None),
    "FEATURES": (lambda n: shaped(n, 1), None),
    "OUTPUTS": (lambda n: shaped(1, n), None),
    "SLOPES": (lambda n: shaped(n // 512, n // (n // 512)), 2**19 + 512),
    "TENSORS": (lambda n: frozen(tuple(dense(1, 1) for _ in range((n - 1) // 2))), None),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_at_a_limit_networks_score_and_certify_and_beyond_it_none_is_made(name: str) -> None:
    make, beyond = NETWORKS[name]
    limit: limits.Limit = getattr(limits, name)
    network = make(limit.largest)
    X = np.random.default_rng(0).normal(size=(20, network.n_features))
    expected = reference.score(network, X)
    assert np.array_equal(network.score(X), expected)
    assert np.array_equal(network.score(X[:1]), expected[:1])
    assert certify(network).holds
    with pytest.raises(ValueError, match=rf"the limit is {limit.largest}: \w+"):
        make(beyond or limit.largest + 1)


def test_the_largest_matrix_certifies_in_seconds() -> None:
    weight = np.full((4096, 4096), 2.0**-13, np.float32)
    steps = (
        Dense(np.ones((4096, 1), np.float32), np.zeros(4096, np.float32)),
        Dense(weight, np.zeros(4096, np.float32)),
        Dense(np.ones((1, 4096), np.float32), np.zeros(1, np.float32)),
    )
    assert weight.size == limits.MATRIX.largest
    network = replace(frozen((dense(1, 1),)), steps=steps, precision="float32", grid=None)
    start = time.perf_counter()
    assert certify(network).constants[0] > 0
    assert time.perf_counter() - start < 60
    with pytest.raises(ValueError, match="weights are in one step; the limit is 16777216:"):
        Dense(np.zeros((4096, 4097), np.float32), np.zeros(4096, np.float32))


@pytest.mark.parametrize("name", ["WORK", "BYTES"])
def test_work_and_bytes_are_limited(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (dense(8, 1), Sort(4), dense(1, 8))
    size = {"WORK": 8 + 8 * 9 // 4 + 8, "BYTES": 8 * (8 + 8 + 8 + 1 + 1)}[name]
    for room in (0, 1):
        monkeypatch.setattr(limits, name, replace(getattr(limits, name), largest=size - room))
        if room == 0:
            frozen(steps)
        else:
            with pytest.raises(ValueError, match=f"{size} .* the limit is {size - 1}: use"):
                frozen(steps)


@pytest.mark.parametrize("name", ["HEADER", "TENSORS", "BYTES"])
def test_files_are_limited(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, limit = tmp_path / "model.isotone", getattr(limits, name)
    network = small()
    network.save(path)
    arrays = content_of(path)[1]
    header = int.from_bytes(path.read_bytes()[:8], "little")
    sizes = {"TENSORS": len(arrays), "BYTES": sum(a.nbytes for a in arrays.values())}
    largest = {"HEADER": header, **sizes}[name]
    monkeypatch.setattr(limits, name, replace(limit, largest=largest))
    load(path)
    monkeypatch.setattr(limits, name, replace(limit, largest=largest - 1))
    with pytest.raises(ValueError, match="model file"):
        load(path)
    with pytest.raises(ValueError, match=f"could not be read back; .* the limit is {largest - 1}"):
        network.save(path)


def test_exports_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = wide(8, 4)
    size = 8 + 8 * 9 // 4 + 8
    monkeypatch.setattr(limits, "EXPORT", replace(limits.EXPORT, largest=size))
    export.write(network, "json", tmp_path / "x.json")
    monkeypatch.setattr(limits, "EXPORT", replace(limits.EXPORT, largest=size - 1))
    for target in export.TARGETS:
        with pytest.raises(ValueError, match="operations would be written out"):
            export.write(network, target, tmp_path / target)


def test_a_large_file_for_allen_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    with path.open("wb") as file:
        file.write(b'{"a": "long')
        file.truncate(limits.SIGMA_NET.largest + 1)
    with pytest.raises(ValueError, match="bytes are in a file for Allen or HLT2"):
        load(path)


def test_json_text_and_its_nesting_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, deepest = tmp_path / "x.json", limits.NESTING.largest
    data = to_dict(small(), claim(Json(), small()))
    for depth, message in ((deepest - 2, ""), (deepest, "nested in JSON; the limit is 64")):
        provenance: Any = {}
        for _ in range(depth):
            provenance = {"a": provenance}
        path.write_text(json.dumps(data | {"provenance": provenance}))
        if message:
            with pytest.raises(ValueError, match=message):
                read(path)
        else:
            read(path)
    path.write_text(json.dumps(data))
    monkeypatch.setattr(limits, "TEXT", replace(limits.TEXT, largest=path.stat().st_size))
    read(path)
    monkeypatch.setattr(limits, "TEXT", replace(limits.TEXT, largest=path.stat().st_size - 1))
    with pytest.raises(ValueError, match="bytes are in a JSON file; the limit is"):
        read(path)


@pytest.mark.parametrize("name", ["JOINT", "JOINT_COLUMNS", "JOINT_VERDICTS"])
def test_joint_directions_are_limited(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = isotone.freeze(isotone.MonotonicNetwork([2, 4, 1], monotonic_cst=[1, 1]))
    two: tuple[dict[str, float], ...] = ({"x0": 1, "x1": 1}, {"x1": 1, "x0": 2})
    assert isotone.certify(replace(network, joint_cst=two)).holds
    monkeypatch.setattr(limits, name, replace(getattr(limits, name), largest=1))
    with pytest.raises(ValueError, match=r"2 .* the limit is 1: leave some out"):
        replace(network, joint_cst=two)


def test_every_limit_stands_in_a_test_above() -> None:
    named = {name for name in vars(limits) if isinstance(getattr(limits, name), limits.Limit)}
    text = Path(__file__).read_text()
    assert not {name for name in named if f'"{name}"' not in text and f"s.{name}.l" not in text}


def test_the_documentation_states_the_limits() -> None:
    page = (root() / "docs/api/frozen.md").read_text()
    cells = re.findall(r"^\| (\d+)([⁰¹²³⁴-⁹]*) \|", page, re.MULTILINE)
    digits = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
    stated = [int(base) ** int(power.translate(digits) or 1) for base, power in cells]
    named = [limit for limit in vars(limits).values() if isinstance(limit, limits.Limit)]
    assert sorted(stated) == sorted(limit.largest for limit in named)


def test_the_engine_has_the_same_limits() -> None:
    of_engine = {
        "MAX_GROUP_SIZE": limits.GROUP,
        "MAX_WIDTH": limits.WIDTH,
        "MAX_STEPS": limits.STEPS,
        "MAX_DEPTH": limits.DEPTH,
        "MAX_MATRIX": limits.MATRIX,
    }
    for name, limit in of_engine.items():
        assert getattr(_engine, name) == limit.largest, name


# ---- the engine itself, without the classes that guard it ----------------------------------


def program(n_features: int = 1, n_outputs: int = 1) -> _engine.Program:
    scaling = np.tile([0.0, 1.0, 0.0, 1.0], (n_features, 1))
    return _engine.Program(
        "float64", [False] * n_features, scaling, np.zeros((n_features, n_outputs)), 1.0, 0.0
    )


def test_the_engine_refuses_groups_widths_steps_and_depths() -> None:
    made = program(2048)
    with pytest.raises(ValueError, match="be at most 1024"):
        made.sort(2048)
    with pytest.raises(ValueError, match="65537 units are too many"):
        program(65537)
    with pytest.raises(ValueError, match="65537 units are too many"):
        program().dense(np.zeros((1, 65537)), np.zeros(65537))
    with pytest.raises(ValueError, match="67108864 weights are too many"):
        program(65536, 1024)
    made = program()
    for _ in range(_engine.MAX_DEPTH):
        made.save()
    with pytest.raises(ValueError, match="nested more than 16 deep"):
        made.save()
    made = program()
    for _ in range(_engine.MAX_STEPS):
        made.pointwise("abs", 0.0)
    with pytest.raises(ValueError, match="at most 1024 steps"):
        made.pointwise("abs", 0.0)


def test_the_engine_refuses_a_merge_of_other_units_and_a_target_of_another_size() -> None:
    made = program()
    made.save()
    made.dense(np.ones((1, 5)), np.zeros(5))
    with pytest.raises(ValueError, match="a `save` before it, of as many units"):
        made.merge(0.5, 0.5)
    made = program(1, 16)
    made.dense(np.ones((1, 16)), np.zeros(16))
    endless = np.broadcast_to(np.zeros((1, 1), np.float32), (2**60, 1))
    with pytest.raises(ValueError, match="16 numbers for each of 1152921504606846976 events"):
        made.score(endless, np.zeros(0), 0.0)  # 2^60 times 16 times 8 bytes is 0 modulo 2^64


def test_the_trainer_refuses_shapes_whose_size_overflows() -> None:
    widths = [2**31 - 1] * 6
    with pytest.raises(ValueError, match="too many parameters"):
        _engine.Stack(widths, [1] * 5, "one", "squared_error")


# ---- doors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: MonotonicNetwork([4, 2048, 1], monotonic_cst=[1] * 4),
        lambda: LipschitzNetwork([4, 2048, 1], group_size=2048),
        lambda: LipschitzNetwork([LipschitzLinear(4, 2048), GroupSort(group_size=None)]),
        lambda: LipschitzNetwork(
            [
                LipschitzLinear(4, 2048),
                Residual(LipschitzLinear(2048, 2048), GroupSort(group_size=None)),
            ]
        ),
        lambda: GroupSort(group_size=2048),
        lambda: FusedTrainer([4, 2048, 1], n_members=1, loss="squared_error"),
    ],
)
def test_networks_that_sort_too_many_units_are_refused_before_training(
    make: Callable[[], object],
) -> None:
    with pytest.raises(ValueError, match="2048 units are sorted together; the limit is 1024"):
        make()


def test_networks_that_could_not_be_frozen_are_refused_before_training() -> None:
    with pytest.raises(ValueError, match="units are computed by one step; the limit is 65536"):
        LipschitzNetwork([4, 2**25 - 1, 1], group_size=1)
    with pytest.raises(ValueError, match="weights are in one step; the limit is 16777216"):
        LipschitzNetwork([4, 8192, 8192, 1], group_size=2)
    with pytest.raises(ValueError, match="features are read; the limit is 16384"):
        LipschitzNetwork([20000, 1])
    with pytest.raises(ValueError, match="slopes, outputs times features"):
        LipschitzNetwork([1024, 2, 1024])
    block: Any = LipschitzLinear(2, 2)
    for _ in range(17):
        block = Residual(LipschitzLinear(2, 2), block)
    with pytest.raises(ValueError, match="17 residual blocks or members are nested"):
        LipschitzNetwork([LipschitzLinear(1, 2), block, LipschitzLinear(2, 1)])
    with pytest.raises(ValueError, match="steps are in the network"):
        LipschitzNetwork([LipschitzLinear(1, 1), *(GroupSort(group_size=1) for _ in range(1024))])


def test_convolutions_count_as_the_matrices_they_are_unrolled_into() -> None:
    convolutions = [LipschitzConv2d(i, 4, 3, padding=1) for i in (1, 4, 4)]
    layers = [*convolutions, nn.Flatten(), LipschitzLinear(4096, 1)]
    with pytest.raises(ValueError, match="bytes of numbers are in the model"):
        LipschitzNetwork(layers, lipschitz=1.0, input_shape=(1, 32, 32))
    assert not any(module._forward_hooks for module in layers)
    assert all(module.training for module in layers)


def test_groups_at_the_limit_freeze_and_score() -> None:
    network = freeze(MonotonicNetwork([4, 1024, 1], monotonic_cst=[1] * 4))
    X = np.random.default_rng(0).normal(size=(50, 4))
    assert np.array_equal(network.score(X), reference.score(network, X))


def forged(path: Path, group_size: int) -> Path:
    """A file whose checksum is right and whose sort is beyond the limit."""
    small().save(path)
    content, _ = content_of(path)
    sort = {"kind": "sort", "group_size": group_size}
    content["steps"] = [{"kind": "dense"}, sort, {"kind": "dense"}]
    arrays = {
        "0.weight": np.zeros((group_size, 3)),
        "0.bias": np.linspace(1, -1, group_size),
        "2.weight": np.zeros((1, group_size)),
        "2.bias": np.zeros(1),
        "residual": np.zeros((1, 3)),
    }
    content["monotonic_cst"] = [[0, 0, 0]]
    modelfile.write(path, content, arrays)
    return path


@pytest.mark.parametrize("group_size", [1025, 2048, 40000])
def test_no_command_takes_a_file_that_sorts_too_many_units(
    group_size: int, tmp_path: Path
) -> None:
    path = forged(tmp_path / "forged.isotone", group_size)
    table = tmp_path / "table.csv"
    table.write_text("x0,x1,x2\n1,2,3\n")
    out = str(tmp_path / "out")
    commands = [["certify"], ["score", str(table), "--out", out + ".csv"], ["show"]]
    commands += [["export", "--to", target, "--out", out] for target in ("json", "cpp", "sql")]
    lines = [[command, str(path), *options] for command, *options in commands]
    code = f"""
from isotone.cli import main
for line in {lines!r}:
    try:
        main(line)
    except SystemExit as end:
        assert end.code == 2, (line, end.code)
    else:
        raise AssertionError(line)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stderr.replace("\n", " ")
    assert said.count(f"{group_size} units are sorted together") == len(commands)


def test_training_refuses_before_it_begins(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    rows = "".join(f"{i % 7},{i % 5},{i % 2}\n" for i in range(200))
    table.write_text("a,b,y\n" + rows)
    arguments = ["train", str(table), "--target", "y", "--out", str(tmp_path / "out")]
    arguments += ["--hidden-layer-sizes", "2048,8", "--group-size", "full"]
    code = f"from isotone.cli import main; main({arguments!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "2048 units are sorted together; the limit is 1024" in done.stderr.replace("\n", " ")
    assert not list(tmp_path.rglob("*.isotone"))


def test_a_sparse_file_of_absurd_width_is_refused_at_once(tmp_path: Path) -> None:
    width = 2**25 - 1
    entries = {
        "0.weight": {"dtype": "F64", "shape": [width, 1], "data_offsets": [0, 8 * width]},
        "0.bias": {"dtype": "F64", "shape": [width], "data_offsets": [8 * width, 16 * width]},
    }
    header = json.dumps(entries).encode()
    path = tmp_path / "absurd.isotone"
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 16 * width)
    start = time.perf_counter()
    with pytest.raises(ValueError, match="declares an array"):
        load(path)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("outputs", ["logits", "values"])
def test_many_outputs_of_many_features_certify_in_seconds(outputs: Any, tmp_path: Path) -> None:
    n = 200
    rng = np.random.default_rng(0)
    network = FrozenNetwork(
        features=tuple(f"x{i}" for i in range(n)),
        scaling=Scaling.identity(n),
        steps=(Dense(rng.uniform(-1, 1, (n, n)) / n, np.zeros(n)),),
        residual=np.where(np.eye(n) > 0, 8.0, 0.0),
        lipschitz=np.ones(n),
        monotonic_cst=rng.integers(-1, 2, (n, n)).astype(np.int8),
        outputs=outputs,
    )
    network.save(tmp_path / "many.isotone")
    for options in ([], ["--json"])[outputs == "values" :]:
        arguments = ["certify", str(tmp_path / "many.isotone"), *options]
        code = f"from isotone.cli import main; main({arguments!r})"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 1, done.stderr
    assert len(json.loads(done.stdout)["slopes"]) == n * n
    assert Engine(network)(np.zeros((2, n))).shape == (2, n)
