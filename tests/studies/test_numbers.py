"""Sentences say what the tables beside them say: a sentence that is no longer so is found here."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from studies.__main__ import jobs_of
from studies.claims import groups, load_claims
from studies.fingerprint import ROOT
from studies.jobs import load_seconds
from studies.study import Study
from studies.tabular import compare
from studies.tabular.datasets import LOADERS
from studies.tabular.pages import tables
from studies.tabular.protocols import beginnings
from studies.tabular.protocols.cells import CONTESTANTS
from studies.tabular.protocols.clean import N_SPLITS
from studies.tabular.protocols.reference import SAME
from studies.trigger.analysis.study import FREE, OURS
from studies.trigger.analysis.study import TREES as TREES_OF_TRIGGER

DOCS = ROOT / "docs"
NETWORKS = ("monotonicnetworks", "mononet", "MLP, unconstrained", "logistic / ridge")
TREES = ("LightGBM", "XGBoost", "HistGradientBoosting", "CatBoost")

# on the pages of tables settings, versions and figures of the literature; results stand in tables
NO_RESULTS = {
    *("0.0", "0.2", "1.5", "1.3"),  # versions, λ
    *("0.05", "0.15"),  # learning rates
    *("89.6", "7.6", "69.3"),  # published by the authors, see `tables.PUBLISHED`
}


def prose(name: str) -> str:
    """A page without tables that programs write, and without programs, in one line."""
    text = (DOCS / name).read_text()
    for block in (r"<!-- (?:table|begin).*?<!-- end.*?-->", r"```.*?```"):
        text = re.sub(block, "", text, flags=re.DOTALL)
    return " ".join(text.split())


def numbers_in(name: str, sentence: str) -> list[float]:
    """The numbers at the places of `#` in a sentence, which must be on the page."""
    found = re.findall(re.escape(sentence).replace(r"\#", r"([\d.]*\d)"), prose(name))
    assert len(found) == 1, f"docs/{name} does not say once: {sentence}"
    return [float(number) for number in ([found[0]] if isinstance(found[0], str) else found[0])]


def says(name: str, sentence: str) -> None:
    assert prose(name).count(sentence) == 1, f"docs/{name} does not say once: {sentence}"


def rows(name: str, head: str, n_keys: int = 1) -> dict[Any, list[str]]:
    """Rows of the table of a page whose head begins with `head`, by their first cells."""
    text = (DOCS / name).read_text().replace("−", "-")
    start = text.index(f"\n| {head}") + 1
    lines = text[start : text.index("\n\n", start)].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {(row[0] if n_keys == 1 else tuple(row[:n_keys])): row[n_keys:] for row in cells}


def first(cell: str) -> float:
    match = re.match(r"[-+]?[\d.,]*\d", cell)
    assert match is not None, cell
    return float(match[0].replace(",", ""))


def test_measured_numbers_of_the_tables_stand_in_tables_alone() -> None:
    text = prose("tabular.md") + prose("tabular-method.md")
    assert set(re.findall(r"\d+\.\d+", text)) == NO_RESULTS
    assert re.findall(r"(\w+) ± ", text) == ["Mean", "Mean"]  # how they are to be read


def leads(name: str, others: tuple[str, ...]) -> dict[str, list[float]]:
    """By how many standard errors a model is ahead of others, split by split, by data set."""
    clean = tables.load_results()["clean"]
    return {
        dataset: [tables.compare(dataset, table[name], table[o], paired=True) for o in others]
        for dataset, table in clean.items()
    }


def test_what_is_said_of_the_clean_protocol() -> None:
    says(
        "tabular.md", "On Adult both are behind all four boosters, and ahead of the other networks"
    )
    for name in tables.OURS:
        assert max(leads(name, TREES)["adult"]) < -1
        assert min(leads(name, NETWORKS)["adult"]) > 1
    says(
        "tabular.md",
        "the teacher helps on California, does harm on LendingClub, and changes less than two",
    )
    found = {name: gap for name, (gap,) in leads("isotone, teacher", ("isotone",)).items()}
    assert found.pop("california") > 2
    assert found.pop("loan") < -2
    assert max(map(abs, found.values())) < 2


def test_what_is_said_of_violations() -> None:
    says("tabular.md", "No violation of a direction was found in any monotone model.")
    for table in tables.load_results()["clean"].values():
        monotone = [name for name in table if CONTESTANTS[name].monotone]
        assert all(table[name]["violations"] == 0 for name in monotone)


def test_what_is_said_of_the_reference_protocol() -> None:
    results = tables.load_results()
    found = results["reference"]
    sentence = (
        "gives the authors' figures within the spread of seeds on Heart, Auto MPG and COMPAS "
        "(#, # and #)"
    )
    stated = numbers_in("tabular.md", sentence)
    for dataset, figure in zip(("heart", "auto_mpg", "compas"), stated, strict=True):
        theirs = found[dataset]["monotonicnetworks"]
        assert tables.PUBLISHED[dataset][1] == figure
        assert abs(theirs["mean"] - figure) <= theirs["deviation"]
    says("tabular.md", "does not reach the best published figure on any of the four.")
    says(
        "tabular.md",
        "range on Heart and BlogFeedback and misses it by a little on Auto MPG and COMPAS",
    )
    ranks = [tables.rank(dataset, results) for dataset in ("heart", "blog", "auto_mpg", "compas")]
    assert ranks == ["within", "within", "not reached", "not reached"]
    compas, (best, authors) = found["compas"], tables.PUBLISHED["compas"]
    says("tabular.md", "with the published settings it equals the authors' figure on COMPAS.")
    assert abs(compas[SAME]["mean"] - authors) < compas[SAME]["deviation"]
    says("tabular.md", "`mononet` is above the best published figure, with a hundred times the")
    assert compas["mononet"]["mean"] > best
    ratio = compas["mononet"]["n_parameters"] / compas[SAME]["n_parameters"]
    assert ratio == pytest.approx(100, rel=0.1)
    says("tabular.md", "the published settings come nowhere near the published figure")
    assert min(found["blog"][name]["mean"] for name in (SAME, "monotonicnetworks")) > 0.32


def test_what_is_said_of_beginnings() -> None:
    found = tables.load_results()["beginnings"]["auto_mpg"]
    parts = {name: beginnings.summary(found[name]["values"]) for name in beginnings.VARIANTS}
    theirs = parts[beginnings.AUTHORS]
    says(
        "tabular-method.md",
        "Averaged over the three parts, the two libraries differ by less than two standard errors",
    )
    means, gaps = [], []
    for name in (SAME, 'isotone, `init="torch"`'):
        gap = parts[name][0] - theirs[0]
        errors = np.hypot(parts[name][1], theirs[1]) / beginnings.N**0.5
        means.append(gap.mean() / (np.sqrt(np.square(errors).sum()) / len(gap)))
        gaps.append(gap / errors)
    says("tabular-method.md", "with our default initialization ours is behind, most on part 0")
    assert 0 < means[0] < 2
    assert gaps[0].argmax() == 0
    says("tabular-method.md", 'same initialization as theirs (`init="torch"`) it is ahead.')
    assert -2 < means[1] < 0


def test_the_time_of_all_studies_is_that_of_the_queue() -> None:
    studies = [Study(group, name) for group in groups() for name in load_claims(group)]
    jobs = jobs_of(studies) + compare.jobs_of(compare.cells_of(list(LOADERS), N_SPLITS))
    minutes = sum(job.cost(load_seconds()) for job in jobs) / 60
    assert numbers_in("tabular.md", "in about # minutes of processor time") == pytest.approx(
        [minutes], rel=0.1
    )


def test_what_is_said_of_choosing_lipschitz() -> None:
    table = rows("choosing-lipschitz.md", "λ | log-loss, learned from")
    scan = {name: [first(cell) for cell in row] for name, row in table.items()}
    says("choosing-lipschitz.md", "Here λ = 2 has the least loss.")
    assert min(scan, key=lambda name: scan[name][1]) == "2"
    sentence = (
        "At λ = 1 it is # percent higher, with a third fewer certified flips and one and a half"
    )
    (more,) = numbers_in("choosing-lipschitz.md", sentence)
    one, two = np.array(scan["1"]), np.array(scan["2"])
    assert 100 * (one[1] / two[1] - 1) == pytest.approx(more, abs=0.5)
    assert one[4] / two[4] == pytest.approx(2 / 3, abs=0.05)
    assert one[3] / two[3] == pytest.approx(1.5, abs=0.05)
    says("choosing-lipschitz.md", "at λ = 16 half of the decisions cannot be certified")
    assert scan["16"][4] == pytest.approx(50, abs=3)


def test_what_is_said_of_other_libraries() -> None:
    claims = load_claims("guide")["comparison"]
    said = {
        "`reg:absoluteerror` # % of the predictions fall": ["absolute_error_XGBoost"],
        "# % of the predictions fall; with one, # %": [
            "categories_2_CatBoost",
            "categories_1_CatBoost",
        ],
        "in # % of the rows a quantile falls": ["quantiles_CatBoost"],
    }
    for sentence, names in said.items():
        shares = [100 * claims[name].value for name in names]
        assert numbers_in("comparison.md", sentence) == pytest.approx(shares, rel=0.05)
    says("comparison.md", "prevents combinations, and then none falls")
    assert claims["categories_apart_CatBoost"].value == 0
    jumps = [claims[f"jump_{name}"].value for name in ("LightGBM", "XGBoost")]
    says("comparison.md", "a change of 0.001 in a feature can move the score by more than 1.")
    assert max(jumps) > 1


def test_what_is_said_of_exact_transport() -> None:
    claims = {name: claim.value for name, claim in load_claims("transport")["scaling"].items()}
    says("transport.md", "the same value as `emd2` in a hundredth of the memory and two to four")
    assert claims["exact_megabytes"] / claims["lazy_megabytes"] > 100
    assert 1.5 < claims["lazy_seconds"] / claims["exact_seconds"] < 4.5
    says("transport.md", "Its time roughly quadruples when the clouds double")
    growth = claims["lazy_seconds_at_largest"] / claims["lazy_seconds"]
    assert growth == pytest.approx(4, rel=0.3)
    (each,) = numbers_in("transport.md", "(about # bytes per pair of points)")
    assert claims["lazy_megabytes_at_largest"] * 1e6 / 8000**2 == pytest.approx(each, abs=0.05)


def test_what_is_said_of_initializations() -> None:
    text = (DOCS / "paper.md").read_text()
    start = text.index("runs of 60 on abs(x) that stay at its mean")
    block = text[start : text.index("<!-- end", start)]
    *others, torch = (int(number) for number in re.findall(r"\| (\d+) \|  \|", block))
    sentence = (
        "on abs(x), # of its 60 runs stayed at the mean, and at most one of any of the others"
    )
    assert numbers_in("initialization.md", sentence) == [torch]
    assert len(others) == 4
    assert max(others) <= 1


def test_what_is_said_of_channels_of_the_trigger() -> None:
    change = {code: float(row[-1]) for code, row in rows("trigger.md", "code").items()}
    sentence = (
        "(#, #, #) lose # to #, the D⁺ channels # to #. All other beauty channels are within "
        "−# and +#."
    )
    stated = numbers_in("trigger.md", sentence)
    charming = [f"{code:.0f}" for code in stated[:3]]
    lost = [-change[code] for code in charming]
    plus = [-change[code] for code in change if code.startswith("21")]
    rest = [change[code] for code in change if code < "2" and code not in charming]
    extremes = [min(lost), max(lost), min(plus), max(plus), -min(rest), max(rest)]
    assert [round(value, 2) for value in extremes] == stated[3:]
    *codes, gain = numbers_in("trigger.md", "a D⁰ of two tracks (#, #) gain #.")
    gained = sorted(change[f"{code:.0f}"] for code in codes)
    assert [round(value, 2) for value in gained] == [gain, gain]
    assert max(change.values()) == gained[1]


def test_what_is_said_of_the_scan_of_the_trigger() -> None:
    found = list(rows("trigger.md", "λ").items())[:6]
    scan = {name.split()[0]: [row[0].split(", "), row[2].split(", ")] for name, row in found}
    efficiency = np.array([[float(number) for number in row[0]] for row in scan.values()])
    certified = {n.split()[0]: [float(c.split(", ")[1]) for c in row[2:]] for n, row in found}
    flips = {name: row[0] for name, row in certified.items()}
    says("trigger.md", "From 8 down to 0.5 a smaller λ costs no efficiency here")
    assert np.all(np.ptp(efficiency[1:], axis=0) < 0.007)
    costs = numbers_in("trigger.md", "at 0.25 it costs # for beauty and # for charm")
    assert efficiency[3] - efficiency[0] == pytest.approx(costs, abs=0.0051)
    sentence = "λ = 0.5 has the same efficiency and # to # % of the certified flips"
    shares = np.array(certified["0.5"]) / np.array(certified["2"])
    ends = numbers_in("trigger.md", sentence)
    assert [100 * shares.min(), 100 * shares.max()] == pytest.approx(ends, abs=2)
    ends = numbers_in("choosing-lipschitz.md", "goes from # to # percent")
    assert [flips["0.5"], flips["8"]] == pytest.approx(ends, abs=0.5)


def test_what_is_said_of_the_smoothness_of_the_trigger() -> None:
    steps = rows("trigger.md", " | Σp_T, 20 MeV")
    ours, trees = ([float(cell) for cell in steps[n][:2]] for n in (OURS, TREES_OF_TRIGGER))
    sentence = "within 20 MeV # % of the candidates enter ours and # % the trees'"
    stated = numbers_in("trigger.md", sentence)
    assert [100 * ours[0], 100 * trees[0]] == pytest.approx(stated, abs=0.5)
    stated = numbers_in("trigger.md", "in ln min χ²_IP it is # % and # % within 0.02")
    assert [100 * ours[1], 100 * trees[1]] == pytest.approx(stated, abs=0.5)
    says("trigger.md", "The trees' boundaries have several stairs, ours none or one")
    n_ours, n_trees = (steps[n][2].split("; ")[0].split(", ") for n in (OURS, TREES_OF_TRIGGER))
    assert set(n_ours) == {"0", "1"}
    assert min(int(number) for number in n_trees) > 2
    says("trigger.md", "that of seed 0 is a little lower than the highest one of any of the trees")
    highest = [
        [first(number) for number in steps[n][2].split("; ")[1].split(", ")]
        for n in (OURS, TREES_OF_TRIGGER)
    ]
    assert 0.85 * min(highest[1]) < highest[0][0] < min(highest[1])
    says("trigger.md", "ours is a curve for seeds 1 and 2, up to a small stair, and has one high")
    assert max(highest[0][1:]) < 0.15


def test_what_is_said_of_the_unconstrained_network_of_the_trigger() -> None:
    table = rows("trigger.md", " | two inputs | Δ")
    free = [float(value) for value in table[FREE][0].split(", ")]
    moved = numbers_in(
        "trigger.md", "Other seeds move the ratio of the unconstrained network by about #"
    )
    assert [np.ptp(free)] == pytest.approx(moved, abs=0.05)
    beauty, charm = table[OURS][1], table[OURS][3]
    says(
        "trigger.md",
        "the median of beauty changes by less than 0.01, that of charm falls by 0.01 to 0.03.",
    )
    for cell in (beauty, charm):
        both = [[float(value) for value in part.split(" to ")] for part in cell.split(", ")]
        assert max(map(abs, both[0])) < 0.01
        assert -0.035 < both[1][0] <= both[1][-1] < -0.005
    says("trigger.md", "Of charm the trigger keeps a fifth, and an eighth of that is lost.")
    channels = rows("trigger.md", "code | decay").items()
    charm_of = [(first(row[1]), first(row[3])) for code, row in channels if code[0] == "2"]
    free_charm, our_charm = np.array(charm_of).T
    assert np.mean(free_charm) == pytest.approx(1 / 5, abs=0.03)
    assert np.median(1 - our_charm / free_charm) == pytest.approx(1 / 8, abs=0.01)


def test_what_is_said_of_scoring() -> None:
    table = rows("speed.md", "contestant | 1 M rows")
    rate = {name: first(row[0]) for name, row in table.items()}
    peers = [
        "ONNX Runtime, TopK",
        "ONNX Runtime, our Min/Max graph",
        "monotonicnetworks 1.5.1",
        "lleaves, 1000 trees",
        "LightGBM, 1000 trees",
    ]
    sentence = (
        "float32 is # times ONNX Runtime with TopK and # times our own ONNX graph, # times "
        "`monotonicnetworks`, # times lleaves and # times LightGBM with 1000 trees, all at a "
        "million rows; with AVX2 it is #, #, #, # and # times."
    )
    stated = numbers_in("speed.md", sentence)
    ours = [rate["isotone float32, AVX-512"], rate["isotone float32, AVX2"]]
    assert stated == pytest.approx([a / rate[b] for a, b in product(ours, peers)], rel=0.02)
    readme = " ".join((ROOT / "README.md").read_text().split())
    training = {name: first(row[-1]) for name, row in rows("speed.md", "batch").items()}
    assert f"{training['256']:.0f} times the authors' library per core at batch 256" in readme


def test_what_is_said_of_comparators_in_onnx() -> None:
    table = rows("exports.md", "network | precision", n_keys=3)
    ratios = [
        first(topk) / first(network)
        for (name, precision, graph), row in table.items()
        if graph == "network" and not name.startswith("8-128")
        for network, topk in zip(row[-2:], table[name, precision, "topk"][-2:], strict=True)
    ]
    stated = numbers_in("exports.md", "the comparator network is # to # times as fast as TopK up")
    assert [round(min(ratios), 1), round(max(ratios), 1)] == stated
