"""Storage: tables that appear whole or not at all, and carry their provenance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from isotone.files import replacing
from studies.trigger.simulation.generation.hadrons import Library

#: key of the provenance in a file
KEY = "isotone.trigger"


def write(path: Path, table: pa.Table, provenance: dict[str, Any] | None = None) -> None:
    """Write Parquet (small: floats are split into bytes) or, by the name, ROOT."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        if path.suffix == ".root":
            _write_root(temporary, table, provenance)
        else:
            _write_parquet(temporary, table, provenance)


def read(path: Path) -> pa.Table:
    return pq.read_table(path)


def provenance(path: Path) -> dict[str, Any]:
    """Parameters, size, seed and generator of a Parquet file of a sample."""
    metadata = pq.read_schema(path).metadata or {}
    if KEY.encode() not in metadata:
        raise ValueError(
            f"{str(path)!r} is no file of a sample; make one with "
            "python -m studies.trigger.simulation.sample"
        )
    return dict(json.loads(metadata[KEY.encode()]))


def load_library(beauty: pa.Table, charm: pa.Table, tracks: pa.Table) -> Library:
    hadrons = pa.concat_tables([beauty, charm])
    pdg, pt, eta = (hadrons[name].to_numpy() for name in ("pdg", "pt", "eta"))
    return Library(pdg, pt, eta, tracks["tracks"].to_numpy())


def _write_parquet(path: Path, table: pa.Table, provenance: dict[str, Any] | None) -> None:
    if provenance is not None:
        table = table.replace_schema_metadata({KEY: json.dumps(provenance, sort_keys=True)})
    floats = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    whole = [name for name in table.column_names if name not in floats]
    pq.write_table(
        table, path, compression="zstd", use_byte_stream_split=floats, use_dictionary=whole
    )


def _write_root(path: Path, table: pa.Table, provenance: dict[str, Any] | None) -> None:
    """A tree of candidates, or of hadrons, and the provenance as a string beside it."""
    try:
        import uproot
    except ImportError as error:
        raise ImportError("a ROOT file needs uproot; run: pip install '.[root]'") from error
    columns = {name: np.asarray(table[name]) for name in table.column_names}
    tree = "hadrons" if "-hadrons" in path.name else "candidates"
    with uproot.recreate(str(path)) as file:
        file.mktree(tree, {name: values.dtype for name, values in columns.items()})
        file[tree].extend(columns)
        file["provenance"] = json.dumps(provenance, sort_keys=True)
