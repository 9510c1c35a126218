"""Studies run end to end, say what they found, and the documentation says the same."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

from studies.claims import Claim, groups, load_claims
from studies.fingerprint import ROOT, digest, files_of, fingerprint, sources
from studies.pages import claims_table, show, write_pages
from studies.paper.distance import SignedDistance
from studies.paper.toys import OUTLIER, flower, logarithm, outlier
from studies.paper.unconstrained import Stack, linear_layers
from studies.study import Results, Study

STUDIES = [(group, name) for group in groups() for name in load_claims(group)]
BLOCK = re.compile(r"<!-- begin (\w+)/(\w+) -->\n\n(.*?)\n\n<!-- end -->", re.DOTALL)
PICTURES = sorted((ROOT / "docs" / "figures").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(("group", "name"), STUDIES, ids=lambda part: part)
def test_a_quick_study_runs_and_is_not_run_twice(group: str, name: str, tmp_path: Path) -> None:
    study = Study(group, name, quick=True, root=tmp_path)
    assert study.stored() is None
    results = study.run()
    assert study.complaints(results) == []
    assert all(np.isfinite(number) for number in results.numbers.values())
    assert study.stored() == results
    for suffix in (".svg", ".pdf"):
        assert study.stem.with_suffix(suffix).stat().st_size > 5000


@pytest.mark.parametrize("group", groups())
def test_every_study_says_what_it_expects_and_what_it_asks(group: str) -> None:
    scripts = (ROOT / "studies" / group).glob("*.py")
    asked = {p.stem: ast.get_docstring(ast.parse(p.read_text())) or "" for p in scripts}
    found = {name for name, text in asked.items() if "\nQuestion: " in text}
    assert found == set(load_claims(group))
    for name in found:
        lines = re.findall(r"^(Question|Data|Claim|Run time): ", asked[name], re.MULTILINE)
        assert lines == ["Question", "Data", "Claim", "Run time"], name


def blocks() -> list[tuple[str, str, str]]:
    pages = sorted((ROOT / "docs").glob("*.md"))
    return [block for page in pages for block in BLOCK.findall(page.read_text())]


def test_every_study_is_in_the_documentation() -> None:
    assert {(group, name) for group, name, _ in blocks()} == set(STUDIES)


@pytest.mark.parametrize(("group", "name", "table"), blocks(), ids=lambda part: part[:30])
def test_the_documentation_says_what_is_expected(group: str, name: str, table: str) -> None:
    claims = load_claims(group)[name]
    cells = [row.split(" | ")[2] for row in table.splitlines()[2:]]
    numbers = dict(zip(claims, map(float, cells), strict=True))
    assert claims_table(group, claims, numbers).strip() == table
    for key, claim in claims.items():
        half_a_digit = 0.006 * abs(claim.value)
        assert abs(numbers[key] - claim.value) <= claim.tolerance + half_a_digit, key


def test_the_table_of_initializations_agrees_with_the_claims() -> None:
    rows = (ROOT / "docs" / "initialization.md").read_text().splitlines()
    names = next(row for row in rows if row.startswith("| sort")).split(" | ")[1:]
    means = next(row for row in rows if row.startswith("| geometric mean")).split(" | ")[1:]
    mean = {
        name.strip(" |"): float(cell.strip(" |")) for name, cell in zip(names, means, strict=True)
    }
    claims = load_claims("paper")["ablation_initialization"]
    for init in ("orthogonal", "bound", "permutation"):
        claim = claims[f"torch_over_{init}"]
        assert mean["torch"] / mean[init] == pytest.approx(claim.value, abs=claim.tolerance)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.stem)
def test_pictures_in_the_documentation_are_small(picture: Path) -> None:
    assert picture.stat().st_size < 400_000


def test_the_slope_that_the_flower_needs_is_the_one_stated() -> None:
    curves = np.split(flower(n=2800).x, 3)
    nearest = [cKDTree(a).query(b, p=1)[0].min() for a, b in pairwise(curves)]
    page = (ROOT / "docs" / "paper.md").read_text()
    (stated,) = re.findall(r"λ = 2, where (\S+) is the least", page)
    assert 0.5 / min(nearest) == pytest.approx(float(stated), abs=0.005)


def test_results_depend_on_the_code_they_use_and_on_nothing_else() -> None:
    names = {path.name for path in sources("studies.paper.fig1_outlier")}
    assert {"fig1_outlier.py", "toys.py", "ensemble.py", "fused.py", "trainer.hpp"} <= names
    assert names.isdisjoint({"fig2_monotone.py", "study.py", "sweep.py", "estimators.py"})
    quick, full = (fingerprint("studies.paper.fig1_outlier", f"{q}") for q in (True, False))
    assert quick != full


PACKAGE = {
    "__init__.py": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n"
    "    from isotone.nn.layers import Layer\n    from isotone.other import unused\n",
    "nn/layers.py": '"""Layers."""\n\n\nclass Layer:\n    """One."""\n\n    width = 20\n',
    "other.py": "def unused():\n    return 0\n",
}
STUDY = {"one.py": "import isotone\n\n\ndef run():\n    return isotone.Layer.width\n"}


def key(tmp_path: Path, name: str, study: dict[str, str], package: dict[str, str]) -> str:
    """The fingerprint of a study, if these were all files there are."""
    for top, files in (("studies", study), ("isotone", package)):
        for path, text in files.items():
            file = tmp_path / name / top / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    folders = {top: tmp_path / name / top for top in ("studies", "isotone")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studies.fingerprint.FOLDERS", folders)
        return fingerprint("studies.one", "")


def replaced(files: dict[str, str], path: str, old: str, new: str) -> dict[str, str]:
    assert old in files[path]
    return files | {path: files[path].replace(old, new)}


def test_words_and_places_leave_the_key_of_results_as_it_is(tmp_path: Path) -> None:
    before = key(tmp_path, "before", STUDY, PACKAGE)
    document = '"""Layers."""', '"""A very different text."""'
    words = replaced(PACKAGE, "nn/layers.py", *document)
    words = replaced(words, "nn/layers.py", "width = 20", "width = 20  # as in the paper")
    assert key(tmp_path, "words", STUDY, words) == before
    undocumented = replaced(PACKAGE, "nn/layers.py", '    """One."""\n\n', "")
    assert key(tmp_path, "undocumented", STUDY, undocumented) == before
    moved = replaced(PACKAGE, "__init__.py", "isotone.nn.layers", "isotone.network.units")
    moved["network/units.py"] = moved.pop("nn/layers.py")
    assert key(tmp_path, "moved", STUDY, moved) == before
    unrelated = replaced(PACKAGE, "other.py", "return 0", "return 1")
    assert key(tmp_path, "unrelated", STUDY, unrelated) == before


def test_code_changes_the_key_of_results(tmp_path: Path) -> None:
    wider = replaced(PACKAGE, "nn/layers.py", "width = 20", "width = 21")
    twice = replaced(STUDY, "one.py", "isotone.Layer.width", "2 * isotone.Layer.width")
    other = replaced(STUDY, "one.py", "isotone.Layer.width", "isotone.unused()")
    versions = [(STUDY, PACKAGE), (STUDY, wider), (twice, PACKAGE), (other, PACKAGE)]
    keys = {key(tmp_path, str(i), *files) for i, files in enumerate(versions)}
    assert len(keys) == len(versions)


def test_imports_count_as_what_they_bring(tmp_path: Path) -> None:
    """The same name from another module is other code, though both modules were there before."""
    both = "from isotone.a import f\nfrom isotone.b import g\n\n\ndef run():\n    return f(g())\n"
    package = {"a.py": "def f(): return 1\ndef g(): return 2\n"}
    package |= {"b.py": "def f(): return 3\ndef g(): return 4\n"}
    before = key(tmp_path, "before", {"one.py": both}, package)
    swapped = both.replace(".a import f", ".b import f").replace(".b import g", ".a import g")
    assert key(tmp_path, "swapped", {"one.py": swapped}, package) != before
    renamed = {"c.py": package["a.py"], "d.py": package["b.py"]}
    study = both.replace("isotone.b", "isotone.d").replace("isotone.a", "isotone.c")
    assert key(tmp_path, "renamed", {"one.py": study}, renamed) == before


def test_c_plus_plus_counts_where_it_is_used_and_byte_by_byte(tmp_path: Path) -> None:
    used, unused = ("studies.paper.fig1_outlier", "studies.tabular.models.trees")
    assert any(path.suffix == ".cpp" for path in sources(used))
    assert {path.suffix for path in sources(unused)} == {".py"}
    (tmp_path / "a.cpp").write_text("int a;")
    (tmp_path / "b.cpp").write_text("int a;")
    one, two = (digest([tmp_path / name]) for name in ("a.cpp", "b.cpp"))
    (tmp_path / "b.cpp").write_text("int a; // of ours")
    assert one == two != digest([tmp_path / "b.cpp"])


def test_a_claim_judges_and_complains() -> None:
    claim = Claim("slope", value=1.0, tolerance=0.1, holds="<= 1.05", theorem=True)
    assert (claim.verdict(1.0), claim.verdict(1.06)) == ("yes", "no")
    assert claim.complaint(1.0) is None
    assert claim.complaint(0.8, quick=True) is None
    assert claim.complaint(0.8) == "0.8, but 1 ± 0.1 was expected"
    assert claim.complaint(1.06, quick=True) == "1.06 must be <= 1.05"
    assert Claim("x", value=0.0, tolerance=0.0).verdict(3.0) == ""


def test_numbers_that_nobody_expects_are_reported() -> None:
    study = Study("paper", "fig1_outlier")
    results = Results("", False, 0.0, {"odd": 1.0})
    (complaint,) = study.complaints(results)
    assert "'odd'" in complaint
    assert "but not in both" in complaint


def test_pages_are_renewed_and_the_rest_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin paper/ablation_apply table -->\nold\n<!-- end -->\nafter")
    write_pages({("paper", "ablation_apply"): Results("", False, 0.0, {}, "| new |")}, tmp_path)
    text = page.read_text()
    assert "| new |" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("\nafter")
    write_pages({}, tmp_path)
    assert page.read_text() == text


def test_numbers_are_shown_with_three_digits() -> None:
    assert [show(n) for n in (40.0, 0.123456, 12.3456, 1.2e-5)] == [
        "40",
        "0.123",
        "12.3",
        "1.2e-05",
    ]


def test_signed_distance_of_two_points_is_the_distance_to_the_middle() -> None:
    points = np.array([[-1.0, 0.0], [1.0, 0.0]])
    distance = SignedDistance(points, np.array([0.0, 1.0]))
    x = np.array([[0.5, 0.0], [-0.25, 0.1], [1.0, 0.0]])
    assert distance(x) == pytest.approx([0.5, -0.25, 1.0], abs=0.011)


def test_a_stack_is_its_networks_side_by_side() -> None:
    stack = Stack([1, 6, 6, 1], seeds=3)
    x = np.linspace(-1.0, 1.0, 20)[:, None]
    for seed, scores in enumerate(stack.predict(x)):
        first, second, third = linear_layers([1, 6, 6, 1], seed)
        h = first(torch.as_tensor(x).float()).sort(dim=1).values
        alone = third(second(h).sort(dim=1).values)[:, 0].detach().numpy()
        assert scores == pytest.approx(alone, abs=1e-6)
    before = np.square(stack.predict(x) - np.abs(x[:, 0])).mean()
    stack.train(x, np.abs(x[:, 0]), steps=50)
    assert np.square(stack.predict(x) - np.abs(x[:, 0])).mean() < before


def test_toys_have_the_noise_that_they_state() -> None:
    noise = [toy.y - np.sin(toy.x[:, 0]) for toy in map(outlier, range(300))]
    spread = np.std(noise, axis=0)
    assert spread[OUTLIER] == pytest.approx(1.0, abs=0.15)
    assert np.delete(spread, OUTLIER) == pytest.approx(0.01, abs=0.0025)
    logs = [toy.y - np.log(toy.x[:, 0]) for toy in map(logarithm, range(300))]
    assert np.var(logs, axis=0) == pytest.approx(0.01 * logarithm().x[:, 0], rel=0.35)
    gap = logarithm(0, (2.5, 4.5)).x
    assert not np.any((gap > 2.5) & (gap < 4.5))


def test_a_key_is_never_made_of_modules_that_are_not_there() -> None:
    assert {path.name for path in files_of(["studies.tabular.protocols.clean"])} == {"clean.py"}
    with pytest.raises(ValueError, match=r"studies.tabular.clean have no file of ours.*full path"):
        files_of(["studies.tabular.clean"])
