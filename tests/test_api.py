"""The shape of the package: names, direction of imports, a half that never loads torch."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

import isotone
from isotone import extras
from networks import small

PACKAGE = Path(isotone.__file__).parent

# A package, or a module beside them, imports only from those to its left.
NUMPY_HALF = [
    *("limits", "arithmetic", "untrusted", "files", "locks", "checks", "extras", "workers"),
    *("elementary", "rounding", "inputs", "data", "frozen", "certificate", "plot", "export"),
    *("trigger", "report"),
]
TORCH_HALF = ["nn", "freezing", "losses", "training", "transport", "estimators"]
ORDER = ["_engine", *NUMPY_HALF, *TORCH_HALF, "cli"]
PACKAGES = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
EXPORT_TO_TORCH = PACKAGE / "export" / "torch.py"  # loaded only when it is asked for


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "isotone":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isotone."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {name[1] for name in names if name[0] == "isotone" and len(name) > 1}
    return found


def files() -> list[Path]:
    return [
        p for p in sorted(PACKAGE.rglob("*.py")) if p.name != "__init__.py" or p.parent != PACKAGE
    ]


def module_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    module = module_of(path)
    allowed = set(ORDER[: ORDER.index(module)]) | ({module} if module in PACKAGES else set())
    assert imports(path) <= allowed


def test_every_module_has_its_place() -> None:
    assert {module_of(path) for path in files()} | {"_engine"} == set(ORDER)


def test_the_numpy_half_does_not_mention_torch() -> None:
    for path in files():
        if module_of(path) not in TORCH_HALF and path != EXPORT_TO_TORCH:
            names = {
                (node.module or "").split(".")[0]
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.ImportFrom)
            } | {
                alias.name.split(".")[0]
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Import)
                for alias in node.names
            }
            assert "torch" not in names, path


def run_without_torch(code: str) -> str:
    hide = "import sys; sys.modules['torch'] = sys.modules['sklearn'] = None\n"
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", hide + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_loading_certifying_and_scoring_need_no_torch(tmp_path: Path) -> None:
    frozen = small()
    frozen.save(tmp_path / "model.isotone")
    output = run_without_torch(
        f"""
        import isotone, isotone.cli
        frozen = isotone.load({str(tmp_path / "model.isotone")!r})
        print(isotone.certify(frozen).holds, frozen.score([[0.5, -1.0, 2.0]])[0].hex())
        """
    )
    assert output.split() == ["True", float(frozen.score([[0.5, -1.0, 2.0]])[0]).hex()]


@pytest.mark.parametrize(
    ("name", "needs"), [("MonotonicNetwork", "torch"), ("MonotonicClassifier", "sklearn")]
)
def test_a_training_name_without_torch_says_what_to_install(name: str, needs: str) -> None:
    output = run_without_torch(
        f"""
        import isotone
        try:
            isotone.{name}
        except ImportError as error:
            print(error)
        """
    )
    assert f"needs {needs}, which is not installed; run: pip install torch scikit" in output


@pytest.mark.parametrize("command", ["train", "sweep"])
def test_a_training_command_without_torch_says_what_to_install(
    command: str, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,y\n0,0\n1,1\n2,0\n3,1\n")
    output = run_without_torch(
        f"""
        import sys
        from isotone import cli
        sys.stderr = sys.stdout
        cli.errors.file = sys.stdout
        try:
            cli.main([{command!r}, {str(table)!r}, "--target", "y", "--out", {str(tmp_path)!r}])
        except SystemExit as exit:
            print(exit.code)
        """
    )
    assert "pip install torch scikit" in output
    assert output.split()[-1] == "2"


def test_the_version_is_the_same_everywhere() -> None:
    root = PACKAGE.parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert project["version"] == isotone.__version__
    assert f"\nversion: {isotone.__version__}\n" in (root / "CITATION.cff").read_text()


def test_every_public_name_resolves() -> None:
    assert set(isotone.__all__) == set(isotone._HOME)
    for name in isotone.__all__:
        assert getattr(isotone, name).__name__ == name
        assert name in dir(isotone)
    assert run_without_torch("import isotone; print(isotone.plot.__name__)") == "isotone.plot\n"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        isotone.nothing  # noqa: B018


def test_advice_about_packages_works_without_an_index() -> None:
    """It names what pyproject.toml does, and nothing asks an index for isotone itself."""
    told = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())
    optional = told["project"]["optional-dependencies"]
    for extra, packages in extras.PACKAGES.items():
        names = [re.match(r"[\w-]+", text)[0] for text in optional[extra]]  # type: ignore[index]
        assert [name for name in names if name != "isotone"] == list(packages)
    folders = "docs/**/*.md", *(f"{name}/**/*.py" for name in ("src", "studies", "bench", "demo"))
    texts = [p for pattern in ("*.md", *folders) for p in PACKAGE.parents[1].glob(pattern)]
    pages = [p for p in texts if p.name not in ("CHANGELOG.md", "extras.py")]
    assert [p for p in pages if re.search(r"install.*'isotone\[", p.read_text())] == []
