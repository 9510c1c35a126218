"""The sample of the trigger study: made in shards, the same whoever makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pyarrow as pa
import pytest
from distributed import Client
from particle import Particle

from clusters import CLOSED
from studies.trigger.simulation import parameters, sample
from studies.trigger.simulation.candidates import BACKGROUND, FEATURES, MIXED, kinds
from studies.trigger.simulation.generation import generators
from studies.trigger.simulation.generation.channels import (
    BEAUTY_CHANNELS,
    CHARM_CHANNELS,
    channels,
)
from studies.trigger.simulation.generation.decays import decayer, lifetime
from studies.trigger.simulation.generation.hadrons import Library
from studies.trigger.simulation.parameters import LIGHT, SIZES, Parameters, Plan
from studies.trigger.simulation.particles import Source
from studies.trigger.simulation.storage import load_library, provenance, read, write
from studies.trigger.simulation.tasks import (
    Task,
    collision_tasks,
    library_tasks,
    run,
    signal_tasks,
)

pytestmark = pytest.mark.skipif(
    find_spec("pythia8mc") is None, reason="pythia8mc has no wheel for this version of Python"
)

PLAN = Plan(Parameters(), SIZES["tiny"])
COLUMNS = {
    *(*FEATURES, "event", "collision", "pass", "channel", "label", "source_1", "source_2"),
    *("hadron_pt", "proper_time", "z", "flight", "pt", "corrected_mass"),
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny sample."""
    path = tmp_path_factory.mktemp("tiny")
    sample.make(PLAN, path, sample.in_processes(1))
    return path


@pytest.fixture(scope="module")
def library(directory: Path) -> Library:
    return load_library(*(read(shards(directory) / t.file(t.kind)) for t in library_tasks(PLAN)))


def shards(directory: Path) -> Path:
    return directory / "shards" / PLAN.key()


def columns(table: pa.Table) -> dict[str, Any]:
    return {name: table[name].to_numpy() for name in table.column_names}


def assert_same(one: pa.Table, two: pa.Table) -> None:
    """Equal to the bit; Arrow's own comparison finds nan different from nan."""
    assert one.schema.equals(two.schema)
    for name in one.column_names:
        np.testing.assert_array_equal(one[name], two[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["collisions", "signal", "longlived"])
def test_every_candidate_passes_the_preselection(directory: Path, name: str) -> None:
    table = columns(read(directory / f"{name}.parquet"))
    assert set(table) == COLUMNS
    assert len(table["pt"]) > 20
    assert (table["pt"] > 1).all()
    assert (table["vertex_chi2"] < 20).all()
    assert (table["corrected_mass"] > 1).all()
    assert (table["ln_min_ip_chi2"] > np.log(4)).all()
    assert (table["z"] > -341).all()
    assert (table["sum_pt"] > 0.4).all()
    assert (table["sum_pt"] <= 100).all()
    assert (table["flight"] > 0).all()
    assert all(np.isfinite(table[feature]).all() for feature in FEATURES)


@pytest.mark.slow
def test_candidates_of_collisions_know_where_they_come_from(directory: Path) -> None:
    table = columns(read(directory / "collisions.parquet"))
    np.testing.assert_array_equal(table["event"], table["collision"] * 2 + table["pass"])
    assert table["collision"].max() < PLAN.size.collisions
    assert set(table["pass"]) == {0, 1}
    heavy = [table[f"source_{i}"] >= Source.CHARM for i in (1, 2)]
    assert (table["label"] == BACKGROUND).tolist() == (~(heavy[0] & heavy[1])).tolist()
    known = ~np.isin(table["label"], [BACKGROUND, MIXED])
    np.testing.assert_array_equal(np.isfinite(table["proper_time"]), known)
    assert (table["channel"] == -1).all()
    counts = np.bincount(kinds(read(directory / "collisions.parquet")), minlength=6)
    assert counts[0] > 0.3 * counts.sum()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stretch"), [("signal", 1.0), ("longlived", 4.0)])
def test_signal_has_every_hadron_and_only_true_candidates(
    directory: Path, name: str, stretch: float
) -> None:
    table = columns(read(directory / f"{name}.parquet"))
    hadrons = columns(read(directory / f"{name}-hadrons.parquet"))
    n = PLAN.size.decays
    np.testing.assert_array_equal(hadrons["event"], np.arange(4 * n))
    assert (table["proper_time"] > 0.2).all()
    assert (hadrons["hadron_pt"] > 2).all()
    counts = np.bincount(table["event"], minlength=4 * n)
    truth = hadrons["proper_time"] > 0.2
    np.testing.assert_array_equal(counts[truth], hadrons["n_candidates"][truth])
    assert not counts[~truth].any()
    same = hadrons["proper_time"][table["event"]], hadrons["channel"][table["event"]]
    np.testing.assert_array_equal(table["proper_time"], same[0])
    np.testing.assert_array_equal(table["channel"], same[1])
    np.testing.assert_array_equal(table["label"], np.where(table["channel"] < 2e7, 2, 1))
    for channel in channels(2):
        times = hadrons["proper_time"][hadrons["channel"] == channel.code]
        mean = stretch * lifetime(channel.head) / LIGHT
        assert times.mean() == pytest.approx(mean, abs=5 * mean / np.sqrt(n))


@pytest.mark.slow
def test_a_shard_depends_on_its_number_alone(directory: Path, library: Library) -> None:
    for tasks in (collision_tasks(PLAN), signal_tasks(PLAN)):
        task = tasks[-1]
        for name, table in run(PLAN, task, library).items():
            assert_same(table, read(shards(directory) / task.file(name)))


@pytest.mark.slow
def test_what_is_finished_is_not_made_again(directory: Path) -> None:
    before = {path.name: read(path) for path in directory.glob("*.parquet")}
    lost = [signal_tasks(PLAN)[1], signal_tasks(PLAN)[5]]
    for task, name in zip(lost, ("signal", "longlived-hadrons"), strict=True):
        (shards(directory) / task.file(name)).unlink()
    made: list[Task] = []

    def runner(plan: Plan, tasks: list[Task], library: Library | None) -> Iterator[Any]:
        made.extend(tasks)
        return iter(sample.in_processes(1)(plan, tasks, library))

    progress: list[tuple[float, float]] = []
    sample.make(PLAN, directory, runner, on_done=lambda *numbers: progress.append(numbers))
    assert made == lost
    assert progress[-1][0] == pytest.approx(progress[-1][1])
    for name, table in before.items():
        assert_same(read(directory / name), table)


@pytest.mark.slow
def test_processes_and_dask_make_the_same_shards(directory: Path, library: Library) -> None:
    tasks = signal_tasks(PLAN)[:2]
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    # in this process: no scheduler listens, and the web page is empty
    with dask.config.set(CLOSED), Client(processes=False, **options) as client:
        made = dict(sample.on_dask(client)(PLAN, tasks, library))
        (shards(directory) / "tracks-00000.parquet").unlink()
        address = ["--scheduler", client.scheduler.address]
        sample.main(["--size", "tiny", "--out", str(directory), *address])
    pooled = dict(sample.in_processes(2)(PLAN, tasks, library))
    for task in tasks:
        for name in task.outputs:
            expected = read(shards(directory) / task.file(name))
            assert_same(made[task][name], expected)
            assert_same(pooled[task][name], expected)


def test_another_plan_has_other_shards() -> None:
    plans = [PLAN, Plan(Parameters(), PLAN.size, seed=2), Plan(Parameters(ghosts=1.0), PLAN.size)]
    assert len({plan.key() for plan in plans}) == 3
    draws = {task.rng(PLAN).random() for task in signal_tasks(PLAN) + library_tasks(PLAN)}
    assert len(draws) == len(signal_tasks(PLAN)) + len(library_tasks(PLAN))


@pytest.mark.slow
def test_files_say_how_they_were_made(directory: Path) -> None:
    for path in directory.glob("*.parquet"):
        said = provenance(path)
        assert said["parameters"] == asdict(PLAN.parameters)
        assert said["size"] == asdict(PLAN.size)
        assert said["generator"] == f"pythia8mc {metadata.version('pythia8mc')}"
        assert said["seed"] == 1
    assert not list(directory.rglob("*.part"))


@pytest.mark.slow
def test_root_holds_the_same_numbers(directory: Path, tmp_path: Path) -> None:
    import uproot

    table = read(directory / "signal.parquet")
    write(tmp_path / "signal.root", table, PLAN.provenance())
    with uproot.open(tmp_path / "signal.root") as file:
        for name in table.column_names:
            np.testing.assert_array_equal(file["candidates"][name].array(), table[name])
        assert "pythia8mc" in str(file["provenance"])
    write(tmp_path / "signal-hadrons.root", read(directory / "signal-hadrons.parquet"))
    with uproot.open(tmp_path / "signal-hadrons.root") as file:
        assert file["hadrons"].num_entries == 4 * PLAN.size.decays


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write(tmp_path / "a.parquet", pa.table({"a": [1.0]}), {"bad": object()})
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_command_says_where_the_tables_are(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample.main(["--size", "tiny", "--out", str(directory), "--processes", "1"])
    assert str(directory / "longlived-hadrons.parquet") in capsys.readouterr().out


def test_all_channels_conserve_charge_and_have_their_numbers() -> None:
    assert (len(BEAUTY_CHANNELS), len(CHARM_CHANNELS)) == (24, 17)
    assert len({channel.code for channel in channels()}) == 41
    for channel in channels():
        assert channel.is_beauty == (channel in BEAUTY_CHANNELS)
        for line in channel.settings():
            mother, _, rest = line.partition(":oneChannel = 1 1.0 ")
            daughters = [Particle.from_pdgid(int(word)) for word in rest.split()[1:]]
            head = Particle.from_pdgid(int(mother))
            assert head.charge == sum(daughter.charge for daughter in daughters), line
            assert head.mass > sum(daughter.mass or 0.0 for daughter in daughters), line


def test_only_the_head_of_a_decay_lives_longer() -> None:
    lambda_b = next(channel for channel in channels() if channel.head == 5122)
    data = decayer(lambda_b, 4.0, seed=1).particleData
    assert data.tau0(5122) == pytest.approx(4 * lifetime(5122))
    assert data.tau0(4122) == pytest.approx(lifetime(4122))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["gosts=1"], "no parameter 'gosts'; choose from energy"),
        (["ghosts=many"], "'ghosts=many' is no setting; write it as ghosts=number"),
        (["ghosts=nan"], r"parameters \['ghosts'\] are not finite; give numbers"),
    ],
)
def test_wrong_settings_say_what_is_right(settings: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Parameters().changed(settings)


def test_settings_change_parameters() -> None:
    changed = Parameters().changed(["ghosts=0.03", "min_planes=4"])
    assert (changed.ghosts, changed.min_planes) == (0.03, 4)


def test_errors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="`--processes` is 0; it must be at least 1"):
        sample.in_processes(0)
    with pytest.raises(ValueError, match="needs the hadron library; make that first"):
        run(PLAN, signal_tasks(PLAN)[0])
    write(tmp_path / "a.parquet", pa.table({"a": [1.0]}))
    with pytest.raises(ValueError, match="is no file of a sample; make one with"):
        provenance(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="Pythia does not know the setting 'No:such = on'"):
        generators.pythia(["No:such = on"], 1)
    empty = Library(*(np.zeros(0) for _ in range(4)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the library has no hadron 511; make it larger"):
        empty.of(511)
    monkeypatch.setitem(__import__("sys").modules, "pythia8mc", None)
    with pytest.raises(ImportError, match=r"needs Pythia 8; run: pip install '\.\[trigger\]'"):
        generators.cascade(1)

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(ImportError, match=r"needs Pythia 8; run: pip install '\.\[trigger\]'"):
        parameters.generator_version()
