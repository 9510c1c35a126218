"""The playground in a real browser: files are dropped, scores have the bits of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotone
from browser import Page, opened
from isotone import FrozenNetwork, certify, freeze, load
from isotone.frozen import reference
from networks import by_hand, copied, every_step, mixed, small
from playground import example
from playground.page import assemble
from playgrounds import people
from reports import EVIL, rows, two_classes
from test_parity import paper

pytestmark = pytest.mark.slow

MAX_BYTES = 1_000_000
READY = "() => typeof isotone === 'object' && isotone.playground"
WIDTHS = [1400, 820, 390]
NAMES = ["income", "debt", "age"]
# waits for all that was asked for, and for the drawing
DONE = """async () => {
    await isotone.playground.busy;
    while (isotone.app && isotone.app.pending) await new Promise((next) => setTimeout(next, 10));
}"""
SHOWN = """() => {
    const { scores, probability, numbers } = isotone.playground.shown;
    const plain = (each) => each && each.map((values) => Array.from(values));
    return { scores: plain(scores), probability: plain(probability), numbers };
}"""
FINGERPRINT = "() => document.getElementById('fingerprint').textContent"
HIDDEN = "() => document.getElementById('problem').hidden"
IN_THE_PAGE = "rows => rows.map(row => isotone.app.network.score(row))"


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "playground.html"
    path.write_text(assemble(), encoding="utf-8")
    return path


def numbers(columns: list[str], n: int = 200) -> pd.DataFrame:
    """Rows of any size, the smallest and the largest numbers among them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, len(columns))) * 10.0 ** rng.uniform(-3, 5, (n, len(columns)))
    X[:4] = [[0.0], [-1e300], [1e300], [5e-324]]
    return pd.DataFrame(X, columns=columns)


def plainly(frozen: FrozenNetwork) -> pd.DataFrame:
    return numbers([column.name for column in frozen.inputs.columns])


CASES: dict[str, tuple[Any, Any]] = {
    "plain numbers": (small, plainly),
    "logarithms": (paper, plainly),
    "knots": (lambda: copied(1, 1), plainly),
    "members, several outputs": (lambda: copied(2, 3), plainly),
    "every step": (lambda: every_step(2), plainly),
    "categories, missing values": (lambda: mixed(1, (1, 1, -1, 1)), lambda _: people()),
    "three classes": (lambda: mixed(3, outputs="logits"), lambda _: people()),
    "float32": (lambda: freeze(small(), precision="float32"), plainly),
    "float32 with a grid": (
        lambda: freeze(small(), precision="float32", exact=True, clip=32.0),
        plainly,
    ),
    "fails": (lambda: by_hand(2.0), plainly),
}


def drop(page: Page, *files: Path) -> None:
    """Choose files as a person would, and wait until all is drawn."""
    for file in files:
        picker = "#model-file" if file.suffix == ".isotone" else "#table-file"
        page.attach(picker, file)
    page.run(DONE)


@pytest.mark.parametrize("name", CASES)
def test_scores_and_verdict_are_those_of_the_library(
    name: str, open_page: Any, html: Path, tmp_path: Path
) -> None:
    """Bit for bit; in float32 those of the reference, as the engine may fuse operations."""
    make, draw = CASES[name]
    make().save(path := tmp_path / "model.isotone")
    frozen = load(path)
    draw(frozen).to_csv(file := tmp_path / "table.csv", index=False)
    table = pd.read_csv(file, keep_default_na=False, dtype=str)  # every digit
    single = frozen.precision == "float32"
    expected = reference.score(frozen, table) if single else frozen.score(table)
    with open_page(html, READY) as page:
        drop(page, path, file)
        found = page.run(SHOWN)
        assert np.array_equal(np.array(found["scores"]).T, expected.reshape(len(table), -1))
        certificate = certify(frozen)
        assert page.text("#verdict-word").endswith("HOLDS" if certificate.holds else "FAILS")
        assert page.run(FINGERPRINT) == certificate.fingerprint
        if single:
            error = 2 * np.array(certificate.rounding_errors)
            assert np.all(np.abs(expected - frozen.score(table)) <= error)
        if frozen.outputs == "logits":
            assert np.array_equal(np.array(found["probability"]).T, frozen.probability(table))
        X = frozen.encode(table)
        again = np.array(page.run(IN_THE_PAGE, X.tolist()), float)
        assert np.array_equal(again, expected.reshape(len(table), -1))
        lines = page.run("() => isotone.playground.scores()").splitlines()[1:]
        kept = np.array([[float(cell) for cell in line.split(",")] for line in lines])
        assert np.array_equal(kept[:, 1 : 1 + frozen.n_outputs], again)
        page.assert_clean()


def test_one_small_file_opens_a_model_without_asking_anyone(open_page: Any, html: Path) -> None:
    assert html.stat().st_size < MAX_BYTES
    with open_page(html, READY) as page:
        drop(page, example.MODEL)
        assert page.text("#verdict-word") == "✓ HOLDS"
        assert "all 3 declared directions proved" in page.text("#checked")
        assert "Every declared constraint holds" in page.text("#report header")
        page.click("#checked summary")
        assert "years_employed (number, may be missing)" in page.text("#checked")
        assert len(page.texts("#curves .card")) == 4
        page.assert_clean()


def test_a_target_gives_quality_and_a_threshold_to_drag(open_page: Any, html: Path) -> None:
    with open_page(html, READY) as page:
        drop(page, example.MODEL, example.TABLE)
        assert "No target column is known" in page.text("#quality")
        page.choose("#target", "repaid")
        page.run(DONE)
        table, frozen = pd.read_csv(example.TABLE), load(example.MODEL)
        scores, paid = frozen.score(table), (table["repaid"] == "yes").to_numpy()
        above = scores[paid][:, None] - scores[~paid]
        auc = np.mean((above > 0) + 0.5 * (above == 0))
        assert f"AUC\n{auc:.3f}" in page.text(".figures")
        page.focus("#threshold")
        for _ in range(5):
            page.press("ArrowRight")
        page.run(DONE)
        threshold = page.run("() => isotone.app.threshold.value")
        accepted = scores >= threshold
        cells = [int(cell) for cell in page.texts(".confusion strong")]
        assert cells == [
            int(np.sum(accepted[rows] == side)) for rows in (~paid, paid) for side in (False, True)
        ]
        page.assert_clean()


def test_a_threshold_makes_decisions_of_values(open_page: Any, html: Path, tmp_path: Path) -> None:
    small(features=tuple(NAMES)).save(path := tmp_path / "model.isotone")
    rows().to_csv(file := tmp_path / "table.csv", index=False)
    with open_page(html, READY) as page:
        drop(page, path, file)
        page.fill("#threshold-box", "0.25")
        page.press("Enter")
        page.run(DONE)
        assert "at least 0.25" in page.text("#report header")
        share = np.mean(load(path).score(rows()[NAMES]) >= 0.25)
        assert page.run("() => isotone.app.threshold.shares().positive") == share
        page.assert_clean()


def test_files_can_be_dropped_and_replaced(open_page: Any, html: Path, tmp_path: Path) -> None:
    """Both at once, in any order; then another model, which the old table does not fit."""
    small().save(other := tmp_path / "other.isotone")
    script = """files => {
        const moved = new DataTransfer();
        const file = ([name, bytes]) => new File([new Uint8Array(bytes)], name);
        files.map(file).forEach((each) => moved.items.add(each));
        const options = { bubbles: true, cancelable: true, dataTransfer: moved };
        document.getElementById("drop").dispatchEvent(new DragEvent("drop", options));
    }"""
    both = [[path.name, list(path.read_bytes())] for path in (example.TABLE, example.MODEL)]
    with open_page(html, READY) as page:
        page.run(script, both)
        page.run(DONE)
        assert len(page.run(SHOWN)["scores"][0]) == 400
        drop(page, other)
        problem = page.text("#problem")
        assert "“loans.csv” has no column “x0”" in problem
        assert len(page.texts("#problem p")) == 3
        assert page.run("() => isotone.app.data.network.fingerprint") == load(other).fingerprint
        assert page.run(SHOWN)["scores"] is None
        page.click("#drop-table")
        page.run(DONE)
        assert page.run(HIDDEN)
        page.assert_clean()


def test_what_training_never_saw_is_asked_about(
    open_page: Any, html: Path, tmp_path: Path
) -> None:
    table = pd.read_csv(example.TABLE)
    table.loc[7, "home"] = "boat"
    table.to_csv(file := tmp_path / "table.csv", index=False)
    with open_page(html, READY) as page:
        drop(page, example.MODEL, file)
        assert "holds “boat” in row 7" in page.text("#problem")
        page.choose("#unseen", "leave out")
        page.run(DONE)
        assert page.run(HIDDEN)
        assert len(page.run(SHOWN)["numbers"]) == 399
        page.choose("#unseen", "treat as missing")
        page.run(DONE)
        with pytest.warns(UserWarning, match="1 of 400 rows"):
            expected = load(example.MODEL).score(pd.read_csv(file), on_unseen="missing")
        assert page.run(SHOWN)["scores"][0] == expected.tolist()
        page.assert_clean()


def test_everything_can_be_reached_by_keys(open_page: Any, html: Path) -> None:
    with open_page(html, READY) as page:
        reached = []
        for _ in range(4):
            page.press("Tab")
            reached.append(page.run("() => document.activeElement.id"))
        assert reached == ["", "model-file", "table-file", "try"]
        page.press("Enter")
        page.run(DONE)
        assert page.text("#verdict-word") == "✓ HOLDS"
        assert "AUC" in page.text(".figures")
        page.focus("#target")
        page.press("ArrowUp")  # to none
        page.run(DONE)
        assert "AUC" not in page.text(".figures")
        assert page.run("() => document.activeElement.id") == "target"
        page.assert_clean()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_window(width: int, scheme: str, open_page: Any, html: Path) -> None:
    view = {"width": width, "height": 800}
    with open_page(html, READY, viewport=view, color_scheme=scheme) as page:
        assert page.run("() => document.documentElement.scrollWidth") <= width
        page.click("#try")
        page.run(DONE)
        assert page.run("() => document.documentElement.scrollWidth") <= width
        page.assert_clean()


@pytest.mark.parametrize("height", [844, 600])
def test_a_problem_is_on_the_screen_of_a_phone(
    height: int, browser: Any, html: Path, tmp_path: Path
) -> None:
    """In Chromium, which can pretend to be one."""
    (bad := tmp_path / f"{'long_name_' * 20}.isotone").write_bytes(bytes(500))
    phone = {"viewport": {"width": 390, "height": height}, "is_mobile": True, "has_touch": True}
    with opened(browser, html, READY, **phone, reduced_motion="reduce") as page:
        drop(page, bad)
        box = page.run("() => document.getElementById('problem').getBoundingClientRect().toJSON()")
        assert 0 <= box["left"] < box["right"] <= 390
        assert 0 <= box["top"] < box["bottom"] <= height
        assert page.run("() => document.documentElement.scrollWidth") == 390
        page.assert_clean()


def test_the_report_can_be_kept_without_rows(open_page: Any, html: Path, tmp_path: Path) -> None:
    """It is a report as `isotone report` writes it, and opens by itself."""
    with open_page(html, READY) as page:
        drop(page, example.MODEL, example.TABLE)
        kept = page.run("() => isotone.playground.page()")
    (path := tmp_path / "report.html").write_text(kept, encoding="utf-8")
    frozen, X = load(example.MODEL), pd.read_csv(example.TABLE)
    with open_page(path) as page:
        assert page.run("() => isotone.app.data.rows.number") == []
        found = np.array(page.run(IN_THE_PAGE, frozen.encode(X).tolist()))[:, 0]
        assert np.array_equal(found, frozen.score(X))
        page.assert_clean()


def test_names_from_files_are_shown_and_never_run(
    open_page: Any, html: Path, tmp_path: Path
) -> None:
    frozen = two_classes(features=(EVIL, "b", "c"), classes=(EVIL, "ok"))
    frozen.save(path := tmp_path / "model.isotone")
    table = numbers([EVIL, "b", "c"]).assign(**{"<i>": EVIL})
    table.to_csv(file := tmp_path / "<b>.csv", index=False)
    with open_page(html, READY) as page:
        drop(page, path, file)
        page.choose("#target", "<i>")
        page.run(DONE)
        assert EVIL in page.text("#report")
        assert page.run("() => window.hacked") is None
        assert isotone.__version__ in page.text("footer")
        page.assert_clean()
