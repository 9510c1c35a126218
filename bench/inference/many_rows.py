"""Score a hundred million rows from a Parquet file and watch the memory.

Question: does `isotone score` need more memory for more rows, and how fast is it?
Data: four standard normal features, float32, in row groups of a million, made here (1.6 GB).
Claim: the peak of the resident memory is that of a million rows.
Run time: about two minutes on one core; ``--rows 5000000`` seconds.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import isotone

FEATURES = ("a", "b", "c", "d")
GROUP = 1_000_000


def write_model(path: Path) -> None:
    network = isotone.MonotonicNetwork([4, 20, 20, 1], monotonic_cst=[1] * 4, lipschitz=2.0)
    isotone.freeze(network, features=list(FEATURES)).save(path)


def write_rows(path: Path, n_rows: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    schema = pa.schema([(name, pa.float32()) for name in FEATURES])
    with pa.parquet.ParquetWriter(path, schema, compression="none") as writer:
        for start in range(0, n_rows, GROUP):
            n = min(GROUP, n_rows - start)
            columns = {name: rng.standard_normal(n, np.float32) for name in FEATURES}
            writer.write_table(pa.table(columns, schema=schema))


def score(folder: Path, n_rows: int) -> tuple[float, float]:
    """Seconds and megabytes that the command takes; the largest so far counts."""
    write_rows(folder / "rows.parquet", n_rows)
    words = ["score", folder / "model.isotone", folder / "rows.parquet"]
    start = time.perf_counter()
    command = [
        Path(sys.executable).with_name("isotone"),
        *words,
        "--out",
        folder / "scores.parquet",
    ]
    subprocess.run([str(word) for word in command], check=True)
    seconds = time.perf_counter() - start
    assert pa.parquet.read_metadata(folder / "scores.parquet").num_rows == n_rows
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    n_rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write_model(folder / "model.isotone")
        for n in (GROUP, n_rows):  # the small one first: the system keeps the largest
            seconds, megabytes = score(folder, n)
            rate = n / seconds / 1e6
            print(f"{n:,} rows: {seconds:.1f} s, {rate:.2f} M rows/s, peak {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
