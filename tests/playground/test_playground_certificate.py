"""The certificate of the page's script, in Node and in a browser, beside that of `certify`."""

from __future__ import annotations

import base64
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import playgrounds
from browser import opened
from candidates import draw_model
from mutants import mutate
from playground.page import assemble
from rivals import Pair, is_available

N = 60
READY = "() => typeof isotone === 'object' && isotone.playground"
ASK = """async files => {
    const answers = [];
    for (const text of files) {
        const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
        answers.push(await isotone.playground.ask({ kind: "Model", name: "m.isotone", bytes }));
    }
    return answers.map(({ verdict = "BAD FILE", fingerprint = null }) => [verdict, fingerprint]);
}"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Models of every kind, and as many changed ones."""
    folder, paths = tmp_path_factory.mktemp("models"), []
    for seed in range(N):
        paths += [folder / f"{seed}.isotone", folder / f"{seed}-changed.isotone"]
        draw_model(seed + 1000).save(paths[-2])
        paths[-1].write_bytes(mutate(paths[-2].read_bytes(), np.random.default_rng(seed)))
    return paths


@pytest.mark.skipif(not is_available(), reason="node is not installed")
def test_the_script_of_the_page_says_what_certify_says(files: list[Path]) -> None:
    pairs = [
        Pair(path, found) for path, found in zip(files, playgrounds.verify(files), strict=True)
    ]
    assert [text for pair in pairs for text in pair.disagreements()] == []
    said = Counter(pair.theirs["verdict"] for pair in pairs)
    assert min(said["HOLDS"], said["FAILS"], said["BAD FILE"]) > N // 5


def test_the_browser_says_what_certify_says(
    files: list[Path], browser: Any, tmp_path: Path
) -> None:
    (html := tmp_path / "playground.html").write_text(assemble(), encoding="utf-8")
    texts = [base64.b64encode(path.read_bytes()).decode() for path in files]
    with opened(browser, html, READY) as page:
        answers = page.run(ASK, texts)
        page.assert_clean()
    for path, (verdict, fingerprint) in zip(files, answers, strict=True):
        ours = Pair(path, {}).ours
        expected = "BAD FILE" if ours is None else "HOLDS" if ours.holds else "FAILS"
        sharper = expected == "FAILS" and verdict == "HOLDS"  # E is smaller; see `Pair.is_sharper`
        assert verdict == expected or sharper, path
        assert fingerprint == (None if ours is None else ours.fingerprint)
