"""Copies of columns: looked up with the bits of the reference, monotone across every seam."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotone import Engine, FrozenNetwork, MonotonicNetwork, Scaling, certify, export, freeze, load
from isotone._engine import Program
from isotone.certificate.bounds import rounding_errors
from isotone.export.native.cpp import Cpp
from isotone.export.native.cuda import Cuda
from isotone.export.native.header import Header
from isotone.frozen import modelfile, reference
from isotone.frozen.lookup import Copies
from isotone.frozen.reference import Units
from isotone.frozen.steps import Dense, Members, Sort
from isotone.inputs.chain import Inputs
from isotone.inputs.columns import Number
from isotone.inputs.knots import Knots
from isotone.typing import Floats
from networks import KNOTS, content_of, copied, seams


def rows(n: int, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * 10.0 ** rng.uniform(-1, 1, (n, 1))
    return np.where(rng.random(X.shape) < 0.3, rng.choice(seams(), X.shape), X)


@pytest.mark.parametrize("seed", range(12))
def test_every_instruction_set_looks_up_the_bits_of_the_reference(seed: int) -> None:
    grid = None if seed % 3 == 0 else 2.0**-20
    frozen = copied(1 + seed % 3, 1 + seed % 4, seed, grid=grid)
    X = rows(517, seed)
    expected = reference.score(frozen, X)
    for isa in Engine.instruction_sets():
        engine = Engine(frozen, isa=isa)
        assert np.array_equal(engine(X), expected)
        for size in (1, 2, 3, 5, 8, 33, 64, 65):
            assert np.array_equal(engine(X[:size]), expected[:size])
        narrow = np.clip(X, -1e30, 1e30).astype("f4")
        assert np.array_equal(engine(narrow), engine(narrow.astype("f8")))
        assert np.array_equal(engine(np.asfortranarray(X)), expected)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("n_members", [1, 3])
def test_scores_are_those_of_all_copies_to_within_e(precision: Any, n_members: int) -> None:
    frozen = copied(2, n_members, precision=precision, grid=None)
    error, X = rounding_errors(frozen), rows(40)
    plain = replace(frozen, inputs=Inputs())
    for x, score in zip(X, frozen.score(X).astype(np.float64), strict=True):
        (u,) = frozen.snap(x[None]).astype(np.float64)
        wide = [replace_numbers(step) for step in plain.steps]
        exact = Units().run(tuple(wide), u[:, None])[:, 0] + frozen.residual @ u
        assert np.all(np.abs(score - exact) <= error + 1e-10)


def replace_numbers(step: Any) -> Any:
    if isinstance(step, Members):
        members = (tuple(replace_numbers(inner) for inner in member) for member in step.members)
        return Members(step.weights, tuple(members))
    if isinstance(step, Dense):
        return Dense(step.weight.astype("f8"), step.bias.astype("f8"))
    return step


def test_copies_are_those_of_the_codes() -> None:
    codes, x = Knots.at(KNOTS), np.repeat(seams()[:, None], 3, axis=1)
    copies = Copies.of(tuple(codes.columns.tolist()), codes.scaling, 1.0, 2.0**-20, "float64")
    u = copies.expand(copies.cells(x)).T
    assert np.array_equal(u, np.rint(codes.transform(x) * 2**20) / 2**20)
    assert np.all(np.diff(u[:, 0]) >= 0)


def test_what_does_not_move_is_summed_exactly_and_rounded_once() -> None:
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(2, 6)) * 10.0 ** rng.uniform(-20, 20, (2, 6))
    scaling = Knots.at([[0.0, 1, 2, 3, 4, 5, 6]]).scaling
    table = Copies.of((0,) * 6, scaling, 1.0, None, "float64").sums(weight)
    for row, found in zip(weight, table, strict=True):
        exact = [Fraction(w) for w in row]
        assert found.tolist() == [float(sum(exact[:t]) - sum(exact[t + 1 :])) for t in range(6)]


def certified_copies(seed: int, n_members: int) -> FrozenNetwork:
    codes, networks = Knots.at(KNOTS), []
    for member in range(n_members):
        torch.manual_seed(100 * seed + member)
        n = codes.n_copies
        networks.append(MonotonicNetwork([n, 8, 8, 1], monotonic_cst=[1] * n, lipschitz=0.5))
        with torch.no_grad():
            for name, parameter in networks[-1].named_parameters():
                parameter.mul_(-1e3 if name.endswith("weight") else 1.0)
    return freeze(networks, knots=codes, features=["a", "b", "c"])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_members", [1, 2])
def test_scores_rise_to_the_last_bit_across_every_seam(seed: int, n_members: int) -> None:
    frozen = certified_copies(seed, n_members)
    assert certify(frozen).holds
    x, rng = seams(), np.random.default_rng(seed)
    for column in range(3):
        for other in rng.choice(x, (5, 3)):
            X = np.repeat(other[None], len(x), axis=0)
            X[:, column] = x
            score = frozen.score(X)
            assert np.all(np.diff(score) >= 0)
            assert np.array_equal(score, np.concatenate([frozen.score(row[None]) for row in X]))
            same = np.all(np.diff(frozen.snap(X), axis=0) == 0, axis=1)
            assert np.all(np.diff(score)[same] == 0)


def test_bad_numbers_are_never_looked_up() -> None:
    frozen = copied()
    X = rows(70)
    expected = frozen.score(X)
    for bad in (np.nan, np.inf, -np.inf):
        for column in range(4):
            Y = X.copy()
            Y[[3, 66], column] = bad
            for isa in Engine.instruction_sets():
                score = Engine(frozen, on_unseen=-7.5, isa=isa)(Y)
                assert np.all(score[[3, 66]] == -7.5)
                assert np.array_equal(np.delete(score, [3, 66]), np.delete(expected, [3, 66]))
                assert Engine(frozen, on_unseen=-7.5, isa=isa)(Y[3:4])[0] == -7.5


def test_sources_are_kept_and_part_of_what_the_network_is(tmp_path: Path) -> None:
    frozen, X = copied(2, 2), rows(30)
    frozen.save(tmp_path / "m.isotone")
    loaded = load(tmp_path / "m.isotone")
    assert loaded.inputs.copies == frozen.inputs.copies
    assert loaded.fingerprint == frozen.fingerprint
    assert np.array_equal(loaded.score(X), frozen.score(X))
    plain = replace(frozen, inputs=Inputs())
    assert plain.fingerprint != frozen.fingerprint
    assert frozen.inputs.names == ("x0", "x1", "x2", "x3")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": Inputs.numbers(["a"], [0] * 22)}, "which are not the 23 of the network"),
        ({"steps": (Sort(1), Dense(np.ones((1, 23)), np.ones(1)))}, "must begin with dense steps"),
    ],
)
def test_wrong_copies_are_explained(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(copied(), **changes)


@pytest.mark.parametrize("copies", [(1,) * 3, (0, 2), (1, 0), (0,)])
def test_every_feature_has_its_copies_in_order(copies: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="must name each of 2 features by its number"):
        Inputs.numbers(["a", "b"], copies)


def test_sums_beyond_float64_are_infinite() -> None:
    scaling = Knots.at([[0.0, 1.0, 2.0, 3.0]]).scaling
    table = Copies.of((0, 0, 0), scaling, 1.0, None, "float64").sums(np.full((1, 3), 1.7e308))
    np.testing.assert_array_equal(table, [[-np.inf, 0.0, np.inf]])


def test_a_grid_must_divide_the_copies() -> None:
    frozen = copied(clip=0.5, grid=2.0**-51)
    with pytest.raises(ValueError, match="and 1 if there are knots"):
        replace(frozen, grid=2.0**-52)


def test_copies_have_no_logarithm() -> None:
    scaling = Scaling.fit([[1.0, 1.0], [2.0, 3.0]], "log")
    with pytest.raises(ValueError, match="a column with several copies cannot have a logarithm"):
        Copies.of((0, 0), scaling, 1.0, None, "float64")


def test_slopes_and_verdicts_are_along_columns() -> None:
    """The slope along x is that of the steepest copy, and 0 beyond the knots."""
    frozen, knots = certified_copies(0, 1), Knots.at(KNOTS)
    certificate = certify(frozen)
    assert [slope.feature for slope in certificate.slopes] == ["a", "b", "c"]
    assert [verdict.feature for verdict in certificate.verdicts] == ["a", "b", "c"]
    plain = certify(replace(frozen, inputs=Inputs()))
    copies = np.array([max(-s.scaled.low, s.scaled.high) for s in plain.slopes])
    for column, slope in enumerate(certificate.slopes):
        most = (copies * knots.scaling.factor)[knots.columns == column].max()
        assert 0.0 <= slope.raw.low <= slope.raw.high
        assert slope.raw.high == pytest.approx(most, rel=1e-12)


def test_knots_are_frozen_with_the_raw_columns(tmp_path: Path) -> None:
    knots = Knots.at([[0.0, 1.0, 2.0], [0.0, 0.5, 1.0]])
    inputs = Inputs((Number("age", fill=1.0),))
    network = MonotonicNetwork([knots.n_copies, 4, 1], monotonic_cst=knots.spread([1, 0]))
    frozen = freeze(network, knots=knots, inputs=inputs)
    assert frozen.features == ("age[0]", "age[1]", "missing(age)[0]", "missing(age)[1]")
    scores = frozen.score({"age": [None, 1.0, 5.0, 2.0]})
    assert scores[2] == scores[3] >= scores[1]
    export.write(frozen, "json", tmp_path / "m.json")
    with pytest.raises(ValueError, match="both say what the network saw"):
        freeze(network, knots=knots, scaling=knots.scaling)
    with pytest.raises(ValueError, match="`knots` are those of 2 features but there are 3 names"):
        freeze(network, knots=knots, features=["a", "b", "c"])
    with pytest.raises(ValueError, match="this one is frozen already"):
        freeze(frozen, knots=knots)


def moved_tiles(center: list[float], factor: list[float]) -> Scaling:
    plain = Scaling.identity(len(center))
    return Scaling(plain.log, plain.offset, plain.floor, np.array(center), np.array(factor))


@pytest.mark.parametrize(
    "center", [[3.0, 0.0, 0.0], [0.0, 2.0 - 2.0**-52, 4.0], [0.0, 0.0, 2.0], [-2.0, 0.0, 1.0]]
)
def test_copies_are_in_order_and_their_tiles_disjoint(center: list[float]) -> None:
    with pytest.raises(ValueError, match=r"are out of order, or their tiles overlap; copies must"):
        Copies.of((0, 0, 0), moved_tiles(center, [1.0] * 3), 1.0, None, "float64")
    touching = moved_tiles([-2.0, 0.0, 2.0], [1.0] * 3)
    assert Copies.of((0, 0, 0), touching, 1.0, None, "float64").counts == (3,)


def test_a_file_with_overlapping_tiles_is_refused(tmp_path: Path) -> None:
    certified_copies(0, 1).save(tmp_path / "m.isotone")
    content, arrays = content_of(tmp_path / "m.isotone")
    content["scaling"]["factor"][1] = np.nextafter(content["scaling"]["factor"][1] / 2, 0.0)
    modelfile.write(tmp_path / "m.isotone", content, arrays)
    with pytest.raises(ValueError, match="copies 0 and 1 are out of order, or their tiles overl"):
        load(tmp_path / "m.isotone")


def test_a_copy_that_is_not_done_where_the_next_begins_is_refused() -> None:
    """As computed: the end of a wide tile is rounded to within a narrow one."""
    apart = moved_tiles([-1.220445851416318e18, 85.0], [8.193726897752225e-19, 2.0**-4])
    with pytest.raises(ValueError, match=r"copy 1 leaves -1 before copy 0 reaches \+1, as"):
        Copies.of((0, 0), apart, 1.0, None, "float64")
    assert Copies.of((0, 0), apart, 1.0, 2.0**-20, "float64").counts == (2,)
    with pytest.raises(ValueError, match="use a finer grid, or tiles further apart"):
        Copies.of((0, 0), moved_tiles([0.0, 2.0], [1.0, 1.0]), 4.0, 4.0, "float64")


@pytest.mark.slow
@pytest.mark.parametrize(("n_members", "precision"), [(3, "float64"), (1, "float32")])
@pytest.mark.parametrize(("target", "header"), [("cpp", Cpp()), ("cuda", Cuda())])
def test_exported_headers_look_up_the_bits_of_the_engine(
    target: str, header: Header, n_members: int, precision: Any, tmp_path: Path
) -> None:
    grid = None if n_members == 1 else 2.0**-20
    frozen = copied(2, n_members, grid=grid, precision=precision)
    export.write(frozen, target, tmp_path / "m")
    X = rows(300)
    found, tolerance = header.score(frozen, tmp_path / "m", X), header.tolerance(frozen)
    assert np.all(tolerance == 0) == (precision == "float64")
    assert np.all(np.abs(found - frozen.score(X)) <= tolerance)


def test_programs_refuse_copies_that_do_not_fit() -> None:
    numbers, two = np.array([[0.0, 1.0, 0.0, 1.0]] * 2), np.ones((2, 1))

    def program() -> Program:
        return Program("float64", [False] * 2, numbers, two, 1.0, 0.0)

    ends, residual = [np.array([1.0])], np.ones((4, 1))
    with pytest.raises(ValueError, match="copies need a count and ends"):
        program().copies([2, 1], ends, residual)
    with pytest.raises(ValueError, match="copies need a count and ends"):
        program().copies([3], [np.ones(2)], residual)
    with pytest.raises(ValueError, match="copies need a count and ends"):
        program().copies([2], ends, two)
    with pytest.raises(ValueError, match="`look_up` takes copies of columns"):
        program().look_up(np.ones((4, 1)), np.zeros(1))
    copies = program()
    copies.copies([2], ends, residual)
    with pytest.raises(ValueError, match="must enter a `look_up`"):
        copies.dense(two, np.zeros(1))
    with pytest.raises(ValueError, match="do not end in the outputs"):
        copies.score(np.ones((1, 1)), np.empty(1), 0.0)
    copies.look_up(np.ones((4, 1)), np.zeros(1))
    with pytest.raises(ValueError, match="`look_up` takes copies of columns"):
        copies.look_up(np.ones((2, 1)), np.zeros(1))


@pytest.mark.parametrize("grid", [None, 2.0**-20])
def test_a_tile_ends_at_the_smallest_number_that_is_computed_as_one(grid: float | None) -> None:
    for exponent, offset in itertools.product((-900, -5, 0, 7, 900), (0.0, 1.0, -(2.0**30))):
        factor = 2.0**exponent
        center = (offset + np.arange(40)) * (2.0 / factor)
        sources, one = (0,) * len(center), np.ones(len(center))
        scaling = Scaling(one == 0, 0 * one, one, center, factor * one)
        copies = Copies.of(sources, scaling, 1024.0, grid, "float64")
        (ends,) = copies.ends
        before = np.nextafter(ends, -np.inf)
        assert copies.cells(ends[:, None]).index[0].tolist() == list(range(1, len(center)))
        assert copies.cells(before[:, None]).index[0].tolist() == list(range(len(center) - 1))
        places = range(len(ends))
        assert np.all(copies.expand(copies.cells(ends[:, None]))[places, places] == 1.0)
        assert np.all(copies.expand(copies.cells(before[:, None]))[places, places] < 1.0)
