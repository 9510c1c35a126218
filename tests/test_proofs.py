"""The proofs in `proofs/` compile, rest on no axiom of ours, and break where they are weakened."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROOFS = Path(__file__).parent.parent / "proofs"
FILES = [line for line in (PROOFS / "_CoqProject").read_text().split() if line.endswith(".v")]
# those of Coq's real numbers
AXIOMS = {
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
# a change of a statement that must not have a proof
WEAKENED = {
    "margin": (
        "2 * rounding_error A g n j r (fun _ => clip) <=",
        "rounding_error A g n j r (fun _ => clip) <=",
    ),
    "roundings": ("gamma A (n + 1) * (Rabs b", "gamma A n * (Rabs b"),
    "underflow": ("+ INR (n + 1) * tiny A", ""),
    "residual": (
        "directed n s i -> L i <= sign (s i) * r i",
        "directed n s i -> 0 <= sign (s i) * r i",
    ),
    "comparators": ("1 <= p -> network n cs", "0 < p -> network n cs"),
}


def _read(name: str) -> str:
    """A file of proofs without its comments."""
    return re.sub(r"\(\*.*?\*\)", "", (PROOFS / name).read_text(), flags=re.DOTALL)


def _compile(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    command = ["coqc", "-q", "-Q", ".", "Isotone", name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with all proofs, compiled, and what that printed."""
    if shutil.which("coqc") is None:
        pytest.skip("coqc is missing (Debian: apt-get install coq libcoq-flocq)")
    folder = tmp_path_factory.mktemp("proofs")
    run = subprocess.run(
        ["make", "-s", "-C", str(PROOFS), f"BUILD={folder}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if "skipped" in run.stdout:
        pytest.skip(run.stdout)
    assert run.returncode == 0, run.stderr
    return folder, run.stdout


def test_every_file_is_listed() -> None:
    assert sorted(FILES) == sorted(path.name for path in PROOFS.glob("*.v"))


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_assumed(name: str) -> None:
    forbidden = r"\b(Admitted|admit|Axioms?|Conjecture|Parameters?|Abort|bypass_check|Unset)\b"
    assert not re.search(forbidden, _read(name))


def test_the_axioms_of_every_statement_are_printed() -> None:
    text = _read("Statements.v")
    (printed,) = re.findall(
        r"^Definition everything :=\s+\((.*?)\)\.", text, re.MULTILINE | re.DOTALL
    )
    assert re.findall(r"\w+", printed) == re.findall(r"^Theorem (\w+)", text, re.MULTILINE)
    assert text.rstrip().endswith("Print Assumptions everything.")


def test_the_page_names_every_theorem_and_file() -> None:
    page = (PROOFS.parent / "docs" / "last-bit.md").read_text()
    named = set(re.findall(r"`(\w+)`", page))
    assert set(re.findall(r"^Theorem (\w+)", _read("Statements.v"), re.MULTILINE)) <= named
    assert set(FILES) - {"Sums.v"} == set(re.findall(r"`(?:proofs/)?(\w+\.v)`", page))


def test_without_coq_there_is_a_message() -> None:
    run = subprocess.run(
        ["make", "-s", "-C", str(PROOFS), "COQC=no-such-program"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r"skipped, no-such-program is missing.*apt-get install coq", run.stdout)


def test_proofs_rest_on_the_axioms_of_real_numbers(compiled: tuple[Path, str]) -> None:
    _, printed = compiled
    found = set(re.findall(r"^([A-Z]\w+\.\w+)\s*(?::|$)", printed, flags=re.MULTILINE)) - set(
        FILES
    )
    assert found
    assert found <= AXIOMS


def test_proofs_do_not_fit_weakened_statements(compiled: tuple[Path, str]) -> None:
    folder, _ = compiled
    text = _read("Statements.v")
    imports = "".join(re.findall(r"^From .*\n", text, flags=re.MULTILINE))
    weakened = [_weaken(text, *change) for change in WEAKENED.values()]
    (folder / "Weakened.v").write_text("\n".join([imports, *weakened]))
    run = _compile(folder, "Weakened.v")
    assert run.returncode == 0, run.stderr
    unchanged = [_weaken(text, before, before) for before, _ in WEAKENED.values()]
    (folder / "Unchanged.v").write_text("\n".join([imports, *unchanged]))
    assert "The command has not failed" in _compile(folder, "Unchanged.v").stderr


def _weaken(text: str, before: str, after: str) -> str:
    """The theorem that contains `before`, changed, with the claim that its proof fails."""
    (theorem,) = [t for t in re.findall(r"^Theorem.*?Qed\.", text, re.M | re.S) if before in t]
    statement, proof = theorem.replace(before, after).removesuffix(" Qed.").split("Proof. ")
    return f"{statement}Proof. Fail ({proof.removesuffix('.').replace('. ', '; ')}). Abort."
