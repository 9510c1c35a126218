"""The command line: verdicts first, exit codes that scripts can use, errors in one line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

import isotone
from isotone import FrozenNetwork, Log, Scaling, certify
from isotone.certificate.slopes import Interval
from isotone.cli import main
from isotone.cli.console import terminal
from isotone.cli.console.terminal import printable
from isotone.data.table import numbers, open_table, write_table
from isotone.frozen.steps import Dense, Sort
from isotone.rounding import digits_up

FEATURES = ("pt", "chi2", "eta")


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Result:
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        assert isinstance(stop.value.code, int)
        return Result(stop.value.code, *capsys.readouterr())

    return call


def network(n_outputs: int = 1, size: float = 0.5, **options: Any) -> FrozenNetwork:
    """Rises with pt and falls with χ², by construction if the weights have `size` below 1."""
    dtype = options.get("precision", "float64")
    weight = np.array([[0.5, -0.5, 0.25], [0.25, 0.5, -0.5]], dtype)
    last = size * np.array([[1.0, -1.0], [0.5, 0.5], [-1.0, 1.0]], dtype)[:n_outputs]
    zeros = np.zeros(2, dtype), np.zeros(n_outputs, dtype)
    direction = np.array([[1, -1, 0], [0, 0, 0], [-1, 1, 0]], dtype=np.int8)[:n_outputs]
    X = np.random.default_rng(0).exponential(size=(100, 3))
    return FrozenNetwork(
        features=FEATURES,
        scaling=Scaling.fit(X, ["standard", Log(floor=1e-3), "robust"]),
        steps=(Dense(weight, zeros[0]), Sort(2), Dense(last, zeros[1])),
        residual=np.where(n_outputs == 1, 1.0, 3.0) * direction,
        lipschitz=np.ones(3),
        monotonic_cst=direction,
        **options,
    )


def save(path: Path, frozen: FrozenNetwork) -> Path:
    frozen.save(path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    classes = ("background", "signal")
    frozen = network(outputs="logits", classes=classes, provenance={"seed": 7, "data": {"n": 9}})
    frozen = replace(frozen, certificate=certify(frozen).to_dict())
    return save(tmp_path / "good.isotone", frozen)


def events(n_rows: int) -> pa.RecordBatch:
    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {name: rng.exponential(size=n_rows) for name in reversed(FEATURES)}
    columns["id"] = np.arange(n_rows)
    columns["note"] = pa.array([f"row {i}" if i % 2 else None for i in range(n_rows)], pa.string())
    return pa.record_batch(columns)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    batch = events(1000)
    write_table(tmp_path / "events.parquet", batch.schema, [batch])
    return tmp_path / "events.parquet"


def columns_of(path: Path | str) -> Mapping[str, Any]:
    source = open_table(path)
    batches = list(source.batches(source.columns))
    columns: Mapping[str, Any] = pa.Table.from_batches(batches).to_pydict()
    return columns


# The program


def test_without_arguments_there_is_help(run: Run) -> None:
    result = run()
    for word in ("Usage", "certify", "score", "show", "--version"):
        assert word in result.out + result.err


def test_version(run: Run) -> None:
    assert run("--version") == Result(0, f"isotone {isotone.__version__}\n", "")


def test_unknown_command(run: Run) -> None:
    result = run("certfy")
    assert result.code == 2
    assert "certify" in result.err


def test_the_program_runs_without_torch(model: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from isotone.cli import main\n"
        f"main(['certify', {str(model)!r}])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("HOLDS")


def test_what_is_printed_is_a_bound() -> None:
    rng = np.random.default_rng(0)
    for x in np.concatenate(
        [rng.normal(size=200) * 10 ** rng.uniform(-300, 300, 200), [0.0, 1.0]]
    ):
        low, high = str(Interval(x, x)).strip("[]").split(", ")
        assert float(low) <= x <= float(high)
        assert float(digits_up(x)) >= x
    assert str(Interval(-1587.0, -0.0)) == "[-1.59e+03, 0]"
    assert digits_up(np.inf) == "inf"


def test_names_from_a_file_cannot_steer_the_terminal() -> None:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(printable("[red]x[/red]\x1b[31m"))
    assert capture.get() == "[red]x[/red]\N{REPLACEMENT CHARACTER}[31m\n"


# certify


def test_certify_a_good_model(run: Run, model: Path) -> None:
    result = run("certify", model)
    certificate = certify(isotone.load(model))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("HOLDS")
    for text in (
        "computed scores are monotone to the last bit",
        certificate.fingerprint,
        "1-norm slope limit respected",
        str(certificate.slopes[0].scaled),
        f"E = {digits_up(certificate.rounding_errors[0])}",
        "dense 3→2",
        "Not guaranteed",
        "±1024",
    ):
        assert text in result.out
    row = next(line.split() for line in result.out.splitlines() if line.startswith("  chi2"))
    assert row[1] == "falls"
    assert row[-2:] == ["yes", "yes"]


def test_certify_a_broken_promise(run: Run, tmp_path: Path) -> None:
    frozen = network(size=4.0)
    result = run("certify", save(tmp_path / "bad.isotone", frozen))
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("FAILS")
    assert "nothing: a declared constraint does not hold" in result.out
    bound = digits_up(certify(frozen).constants[0])
    assert f"1-norm slope limit EXCEEDED (proven only: at most {bound} × λ)" in result.out
    row = next(line.split() for line in result.out.splitlines() if line.startswith("  pt"))
    assert row[-2:] == ["NO", "NO"]


def test_certify_believes_no_stored_claim(run: Run, tmp_path: Path) -> None:
    claim = certify(network()).to_dict()
    path = save(tmp_path / "liar.isotone", network(size=4.0, certificate=claim))
    result = run("certify", path)
    assert result.code == 1
    assert f'is about another network, with fingerprint "{claim["fingerprint"]}"' in result.err
    assert "claims that its constraints hold, but its numbers do not; do not use it" in result.err


def test_certify_a_harmless_old_certificate(run: Run, tmp_path: Path) -> None:
    path = save(
        tmp_path / "old.isotone", network(certificate={"fingerprint": "f00", "holds": True})
    )
    result = run("certify", path)
    assert result.code == 0
    assert 'with fingerprint "f00"; only what was recomputed here counts' in result.err
    assert "do not use" not in result.err


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_certify_json(run: Run, tmp_path: Path, n_outputs: int) -> None:
    for size, code in ((0.5, 0), (9.0, 1)):
        frozen = network(n_outputs, size=size, outputs="logits")
        result = run("certify", save(tmp_path / "a.isotone", frozen), "--json")
        assert (result.code, result.err) == (code, "")
        assert json.loads(result.out) == certify(frozen).to_dict()


def test_certify_several_classes(run: Run, tmp_path: Path) -> None:
    frozen = network(3, size=0.1, outputs="logits", classes=("low", "mid", "high"))
    result = run("certify", save(tmp_path / "a.isotone", frozen))
    assert result.code == 0
    for name in frozen.classes or ():
        assert f"output {name}; directions are those of its probability" in result.out


def test_certify_without_a_grid(run: Run, tmp_path: Path) -> None:
    result = run("certify", save(tmp_path / "a.isotone", network(grid=None)))
    assert result.code == 0
    assert "not rounded" in result.out
    assert "to 2E" in result.out


def test_certify_without_a_bound_of_rounding(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unbounded = replace(certify(isotone.load(model)), rounding_errors=(np.inf,))
    monkeypatch.setattr("isotone.certify", lambda _: unbounded, raising=False)
    assert "no bound on the rounding error was found" in run("certify", model).out


def test_certify_a_tampered_file(run: Run, model: Path) -> None:
    data = bytearray(model.read_bytes())
    data[-3] ^= 1
    model.write_bytes(data)
    result = run("certify", model)
    assert (result.code, result.out) == (2, "")
    assert "does not match its checksum" in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            MemoryError(),
            "error: there is not enough memory; use less data, a smaller model or more",
        ),
        (MemoryError("9 TiB"), "there is not enough memory (9 TiB); use less data"),
        (RecursionError("too deep"), "too deep"),
        (OverflowError("too large"), "too large"),
        (EOFError("half a file"), "the input ended too early (half a file); copy it again"),
        (RuntimeError("oh"), "RuntimeError: oh; this is a bug in isotone: please report it"),
    ],
)
@pytest.mark.parametrize("command", ["certify", "show", "export --to json --out x"])
def test_only_a_verdict_ends_with_one(
    run: Run,
    model: Path,
    command: str,
    error: Exception,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("isotone.load", fail, raising=False)
    name, *options = command.split()
    result = run(name, model, *options)
    assert result.code == 2
    assert message in result.err


@pytest.mark.parametrize("options", [["--json"], []])
def test_a_reader_that_goes_away_is_no_verdict(model: Path, options: list[str]) -> None:
    code = f"from isotone.cli import main; main({['certify', str(model), *options]!r})"
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    program.stdout.close()
    error = program.communicate()[1]
    assert (program.returncode, error) == (2, "")


def test_a_table_in_place_of_a_model_is_said_to_be_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("id,score\n1,0.5\n2,0.7\n")
    result = run("certify", tmp_path / "scores.csv")
    assert (result.code, result.out) == (2, "")
    assert "is not a model file" in result.err
    assert "cut off" not in result.err


@pytest.mark.parametrize("command", ["certify", "show"])
def test_unreadable_models(run: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "text.isotone").write_text("hello, this is not a model")
    for name, message in (("none", "No such file or directory; check"), ("text", "model file")):
        result = run(command, tmp_path / f"{name}.isotone")
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("error: ")
        assert f"{name}.isotone'" in result.err
        assert message in result.err
        assert len(result.err.splitlines()) == 1


# show


def test_show(run: Run, model: Path) -> None:
    result = run("show", model)
    frozen = isotone.load(model)
    assert (result.code, result.err) == (0, "")
    for text in (
        "3-2-1, 11 parameters",
        "1 logit; classes background, signal",
        "of the probability of signal, rather than of background",
        "float64; scaled inputs are clamped to ±1024 and rounded to 2^-20",
        frozen.fingerprint,
        *(frozen.scaling.describe(i) for i in range(3)),
        '  │ "data": {"n": 9}\n',
        '  │ "seed": 7\n',
    ):
        assert text in result.out


def test_show_several_outputs(run: Run, tmp_path: Path) -> None:
    frozen = network(3, outputs="logits", classes=("low", "mid", "high"), metric="1", grid=None)
    out = run("show", save(tmp_path / "a.isotone", frozen)).out
    assert "low rises, high falls" in out
    assert "3 logits; classes low, mid, high" in out
    assert "not rounded" in out
    assert "provenance" not in out
    out = run("show", save(tmp_path / "b.isotone", network(2))).out
    assert "2 values" in out
    assert "0 rises" in out


# score


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".root"])
@pytest.mark.parametrize("origin", [".csv", ".parquet", ".root"])
def test_score(run: Run, model: Path, tmp_path: Path, origin: str, suffix: str) -> None:
    batch = events(1000).drop_columns(["note"])
    write_table(tmp_path / f"in{origin}", batch.schema, [batch])
    out = tmp_path / f"out{suffix}"
    result = run("score", model, tmp_path / f"in{origin}", "--out", out, "--keep", "id")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("scored 1,000 rows in ")
    assert result.out.endswith(f"s: {out}\n")
    written = open_table(out)
    assert written.columns == ("id", "score")
    assert written.schema(["id", "score"]).types == [pa.int64(), pa.float64()]
    expected = isotone.load(model).score(numbers(batch, FEATURES))
    (found,) = written.batches(["id", "score"])
    assert np.array_equal(numbers(found, ["id", "score"]).T, [np.arange(1000), expected])


@pytest.mark.parametrize(("n", "rows"), [(1, "1 row"), (2, "2 rows")])
def test_score_counts_what_training_never_saw(
    run: Run, model: Path, tmp_path: Path, n: int, rows: str
) -> None:
    (tmp_path / "in.csv").write_text("pt,chi2,eta\n1,2,3\n" + "1,,3\n" * n)
    out = run(
        "score", model, tmp_path / "in.csv", "--out", tmp_path / "o.csv", "--on-unseen", "skip"
    )
    told = (
        f"{rows} held values never seen in training; handled by `--on-unseen skip`, {n} without a "
        "score\n"
    )
    assert (out.code, out.out.endswith(f"\n{told}")) == (0, True)


@pytest.mark.parametrize(("n", "told"), [(1, "scored 1 file in "), (2, "scored 2 files in ")])
def test_score_a_directory(run: Run, model: Path, tmp_path: Path, n: int, told: str) -> None:
    (tmp_path / "in").mkdir()
    for k in range(n):
        batch = events(3)
        write_table(tmp_path / "in" / f"{k}.parquet", batch.schema, [batch])
    assert run("score", model, tmp_path / "in", "--out", tmp_path / "out").out.startswith(told)


def test_score_a_large_csv_file(run: Run, model: Path, tmp_path: Path) -> None:
    batch = events(200_000)
    write_table(tmp_path / "in.csv", batch.schema, [batch])
    assert run("score", model, tmp_path / "in.csv", "--out", tmp_path / "out.parquet").code == 0
    found = columns_of(tmp_path / "out.parquet")["score"]
    assert np.array_equal(found, isotone.load(model).score(numbers(batch, FEATURES)))


def test_score_with_probability_and_text(run: Run, model: Path, table: Path) -> None:
    out = table.with_name("out.parquet")
    keep = ("--keep", "note", "--keep", "id", "--keep", "note")
    assert run("score", model, table, "--out", out, *keep, "--probability").code == 0
    found = columns_of(out)
    assert list(found) == ["note", "id", "score", "probability(signal)"]
    assert found["note"] == events(1000)["note"].to_pylist()
    expected = isotone.load(model).probability(numbers(events(1000), FEATURES))
    assert found["probability(signal)"] == expected.tolist()


def test_score_copies_csv_text_to_csv_as_it_is(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('eta,chi2,pt,name\n1,2,3,007\n1,2,3,"1.50, x"\n')
    run("score", model, tmp_path / "in.csv", "--out", tmp_path / "out.csv", "--keep", "name")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "name,score"
    assert lines[1].startswith("007,")
    assert lines[2].startswith('"1.50, x",')


@pytest.mark.parametrize(
    ("classes", "names"), [(("a", "b", "c"), ["a", "b", "c"]), (None, ["0", "1", "2"])]
)
def test_score_several_outputs(
    run: Run, table: Path, classes: tuple[str, ...] | None, names: list[str]
) -> None:
    frozen = network(3, outputs="logits", classes=classes, precision="float32")
    model, out = save(table.with_name("a.isotone"), frozen), table.with_name("out.parquet")
    told = run("score", model, table, "--out", out, "--on-unseen", "0").err
    assert "one score, but there are 3 outputs" in told
    assert "`--on-unseen skip`" in told
    assert run("score", model, table, "--out", out, "--probability").code == 0
    found = columns_of(out)
    assert list(found) == [f"score_{n}" for n in names] + [f"probability({n})" for n in names]
    X = numbers(events(1000), FEATURES)
    assert np.array_equal(np.array(list(found.values())[:3]).T, frozen.score(X))
    assert np.array_equal(np.array(list(found.values())[3:]).T, frozen.probability(X))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".root"])
def test_score_no_rows(run: Run, model: Path, tmp_path: Path, suffix: str) -> None:
    batch = events(0).drop_columns(["note"])
    write_table(tmp_path / f"in{suffix}", batch.schema, [])
    result = run(
        "score",
        model,
        tmp_path / f"in{suffix}",
        "--out",
        tmp_path / f"out{suffix}",
        "--keep",
        "id",
    )
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("scored 0 rows")
    assert open_table(tmp_path / f"out{suffix}").columns == ("id", "score")


def test_score_shows_progress_on_a_terminal(
    run: Run, model: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "errors", Console(stderr=True, force_terminal=True))
    result = run("score", model, table, "--out", table.with_name("out.csv"))
    assert "1,000 rows" in result.err
    assert result.out.startswith("scored")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["events.parquet", "--out", "events.parquet"],
            "'events.parquet', which is read",
        ),
        (["other.csv", "--out", "out.csv"], "there is no file 'other.csv'; give the path"),
        (["events.parquet", "--out", "out.xlsx"], "'out.xlsx' has an unknown suffix; a table"),
        (["events.parquet", "--out", "no/out.csv"], "there is no directory 'no'; create it first"),
        (["events.parquet", "--out", "folder.csv"], "'folder.csv' is a directory; name a file"),
        (["events.parquet", "--out", "out.csv", "--keep", "ID"], "did you mean 'id'?"),
        (["events.parquet", "--out", "out.root", "--keep", "note"], "numbers only: leave the"),
        (["score.csv", "--out", "out.csv", "--keep", "score"], "has the name of an output column"),
        (["score.csv", "--out", "out.csv"], "column 'chi2' holds the text 'x' in row 1 (data"),
        (["short.csv", "--out", "out.csv"], "the model needs; did you mean 'Chi2'?"),
    ],
)
def test_score_refuses(
    run: Run,
    model: Path,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(table.parent)
    Path("score.csv").write_text("eta,chi2,pt,score\n1,2,3,4\n1,x,3,4\n")
    Path("short.csv").write_text("eta,Chi2,pt\n1,2,3\n")
    Path("folder.csv").mkdir()
    before = {path: path.read_bytes() for path in table.parent.iterdir() if path.is_file()}
    result = run("score", model, *arguments)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert {path: path.read_bytes() for path in table.parent.iterdir() if path.is_file()} == before
    assert not list(Path("folder.csv").iterdir())


def test_score_refuses_probabilities_of_values(run: Run, table: Path) -> None:
    model = save(table.with_name("values.isotone"), network())
    out = table.with_name("out.csv")
    result = run("score", model, table, "--out", out, "--probability")
    assert result.code == 2
    assert "need outputs='logits'" in result.err
    assert not out.exists()


def test_export_writes_and_compares(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    result = run("export", model, "--to", "json", "--out", out)
    assert result.code == 0
    assert "its scores match the model's" in " ".join(result.out.split())
    assert json.loads(out.read_text())["fingerprint"] == isotone.load(model).fingerprint
    result = run("export", model, "--to", "json", "--out", out, "--no-check")
    assert "was not compared with the model" in result.out


def test_export_prints_the_claim_of_the_file(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    exact = run("export", model, "--to", "json", "--out", out).out
    claim = json.loads(out.read_text())["certificate"]
    for name in ("guarantee", "arithmetic", "provided"):
        assert claim[name] in exact
    assert "guaranteed: computed scores are monotone to the last bit\n" in exact
    out = tmp_path / "model.onnx"
    rounded = run("export", model, "--to", "onnx", "--out", out, "--precision", "float32").out
    assert "to the last bit" not in rounded
    assert "its scores match the model's within the bounds of its arithmetic" in rounded
    assert "no stronger claim is made" in rounded


def test_export_takes_the_options_of_the_target(run: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.onnx"
    onnx_options = ("--precision", "float32", "--sort", "topk", "--sums", "matmul")
    assert run("export", model, "--to", "onnx", "--out", out, *onnx_options).code == 0
    out = tmp_path / "model.sql"
    sql_options = ("--dialect", "duckdb", "--table", "my table", "--keep", "id", "--keep", "pt")
    assert run("export", model, "--to", "sql", "--out", out, *sql_options).code == 0
    assert '"my table"' in out.read_text()


def test_export_refuses_in_one_line(run: Run, model: Path, tmp_path: Path) -> None:
    result = run("export", model, "--to", "excel", "--out", tmp_path / "x")
    assert (result.code, "`target='excel'` is unknown" in result.err) == (2, True)
    result = run("export", model, "--to", "json", "--out", tmp_path / "x", "--sort", "topk")
    assert (result.code, "`sort` is not an option of the target" in result.err) == (2, True)
    result = run("export", model, "--to", "json", "--out", model)
    assert (result.code, "outputs must not be inputs" in result.err) == (2, True)
