"""One walk over steps: every language knows every kind; what a new kind lacks is named."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import isotone
from isotone.frozen.loading import assemble
from isotone.frozen.program import Kind, Language, flatten
from isotone.frozen.reference import Units
from isotone.frozen.steps import (
    Dense,
    Members,
    Pointwise,
    Sort,
    Step,
    StepKind,
    arrays_of,
    change_first,
    change_last,
    describe,
    residual_block,
    work_of,
)
from networks import every_step

PACKAGE = Path(isotone.__file__).parent
RUNTIME = PACKAGE.parents[1] / "cpp" / "runtime"
KINDS = {kind.kind for kind in get_args(Step)}


def languages() -> list[type]:
    """All of them, wherever they are written."""
    for path in PACKAGE.rglob("*.py"):
        if "(Language[" in path.read_text():
            parts = path.relative_to(PACKAGE).with_suffix("").parts
            importlib.import_module(".".join(("isotone", *parts)))
    return [cls for cls in Language.__subclasses__() if cls.__module__.startswith("isotone.")]


def test_every_language_says_what_every_step_becomes() -> None:
    """A kind without a method in `Language`, or a language without a method, is listed here."""
    found = languages()
    homes = {cls.__module__.removeprefix("isotone.") for cls in found}
    assert homes == {
        *("frozen.program", "frozen.reference"),
        *("certificate.bounds", "certificate.interactions", "certificate.ordered"),
        *("certificate.distance", "certificate.widths", "freezing.fixed"),
        *("export.native.cuda", "export.native.whole", "export.fpga.trace"),
        *("export.onnx.nodes", "export.sql.select", "export.torch"),
    }
    lacking = {cls.__qualname__: KINDS - set(dir(cls)) for cls in [Language, *found]}
    assert not any(lacking.values()), lacking
    unwritten = {cls.__qualname__: set(cls.__abstractmethods__) for cls in found}  # type: ignore[attr-defined]
    assert not any(unwritten.values()), unwritten


def test_the_page_and_the_runtime_know_every_kind() -> None:
    page = (PACKAGE / "report" / "web" / "model.js").read_text()
    assert set(re.findall(r'case "(\w+)":', page)) >= KINDS
    models = "".join(path.read_text() for path in RUNTIME.glob("*.hpp"))
    (enum,) = re.findall(r"enum class Kind[^{]*\{([^}]*)\}", models)
    assert set(get_args(Kind)) == set(re.findall(r"\w+", re.sub(r"//.*", "", enum)))


def test_a_language_that_lacks_a_step_cannot_be_made() -> None:
    class Partial(Language[int]):
        def dense(self, step: Dense, h: int) -> int:
            return h

    with pytest.raises(TypeError, match="members"):
        Partial()  # type: ignore[abstract]


def dense(n_out: int, n_in: int, seed: int = 0) -> Dense:
    rng = np.random.default_rng(seed)
    return Dense(rng.normal(size=(n_out, n_in)), rng.normal(size=n_out))


def test_a_residual_block_is_the_sum_of_its_units_and_its_branch() -> None:
    h = np.random.default_rng(1).normal(size=(4, 50))
    branch = (dense(4, 4), Sort(2))
    block = residual_block(0.5, 0.25, branch)
    assert block.is_residual
    assert np.array_equal(Units().run((block,), h), 0.5 * h + 0.25 * Units().run(branch, h))
    kinds = [i.kind for i in flatten((block, dense(1, 4)), 4, None)]
    assert kinds == ["save", "dense", "sort", "merge", "dense"]


def test_members_may_be_the_identity_anywhere() -> None:
    h = np.random.default_rng(1).normal(size=(4, 50))
    for members in (((), (dense(4, 4),), ()), ((dense(4, 4),), ())):
        step = Members((0.5, -0.25, 2.0)[: len(members)], members)
        expected = sum(
            w * (Units().run(m, h) if m else h) for w, m in zip(step.weights, members, strict=True)
        )
        assert np.allclose(Units().run((step,), h), expected)
        assert work_of((step,), 4) > 0


@pytest.mark.parametrize("numbers", [True, False])
def test_what_describes_steps_makes_them_again(numbers: bool) -> None:
    steps = every_step(2).steps
    arrays = arrays_of(steps)
    described = describe(steps, numbers)
    rebuilt = assemble(described, lambda _, name: arrays[name])
    assert describe(rebuilt, True) == describe(steps, True)
    assert [str(step) for step in rebuilt] == [str(step) for step in steps]


STEPS: list[Step] = [
    dense(4, 3),
    Sort(2),
    Pointwise("leaky_relu", 0.25),
    Members((0.5, -2.0), ((dense(4, 3, 1),), (dense(4, 3, 2), Sort(4)))),
]


def test_every_kind_of_step_is_tried_here() -> None:
    assert [type(step) for step in STEPS] == list(get_args(Step))
    assert all(issubclass(kind, StepKind) for kind in get_args(Step))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.kind)
def test_a_file_keeps_every_field_of_every_kind_of_step(step: Step) -> None:
    arrays = arrays_of((step,))
    text = json.dumps(describe((step,), numbers=False))
    (again,) = assemble(json.loads(text), lambda _, name: arrays.pop(name))
    assert not arrays
    assert type(again) is type(step)
    found, expected = again.describe(numbers=True), step.describe(numbers=True)
    assert found == expected
    assert set(found) == {"kind", *(field.name for field in fields(step))}


def test_a_kind_of_step_that_lacks_an_answer_cannot_be_made() -> None:
    class Partial(StepKind):
        def width(self, n_in: int) -> int:
            return n_in

    with pytest.raises(TypeError, match="changed"):
        Partial()  # type: ignore[abstract]


def test_the_ends_of_steps_are_changed_in_every_member() -> None:
    member = (dense(4, 3), Sort(2), dense(2, 4))
    steps = (Members((0.5, 0.5), (member, member)),)
    half = lambda step: Dense(0.5 * step.weight, step.bias)  # noqa: E731
    for change, place in ((change_first, 0), (change_last, -1)):
        changed = change(steps, half)[0]
        assert isinstance(changed, Members)
        for one in changed.members:
            assert np.array_equal(one[place].weight, 0.5 * member[place].weight)  # type: ignore[union-attr]
            assert np.array_equal(one[-1 - place].weight, member[-1 - place].weight)  # type: ignore[union-attr]
        with pytest.raises(ValueError, match="a dense step is needed at this end"):
            change((Sort(2),), half)
    with pytest.raises(ValueError, match="at this end of the network; got None"):
        change_last((residual_block(1.0, 1.0, member),), half)


def test_members_become_parts_of_one_sum() -> None:
    """The first starts it and the others go on; between them the units are what they were."""
    steps = ((dense(2, 4),), (dense(3, 4), Pointwise("relu"), dense(2, 3)), (dense(2, 4),))
    found = flatten((Members((0.5, -0.25, 2.0), steps), dense(1, 2)), 4, None)
    assert [(i.kind, i.n_in, i.n_out) for i in found] == [
        *(("fork", 4, 4), ("dense", 4, 2), ("part", 2, 4)),
        *(("dense", 4, 3), ("pointwise", 3, 3), ("dense", 3, 2), ("part", 2, 4)),
        *(("dense", 4, 2), ("join", 2, 2), ("dense", 2, 1)),
    ]
    sums = [(i.keep, i.add) for i in found if i.kind in ("part", "join")]
    assert sums == [(0.0, 0.5), (1.0, -0.25), (1.0, 2.0)]
