"""The shape of the package: names, direction of imports, a half that never loads torch."""

from __future__ import annotations

import ast
import importlib
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
    *("typing", "limits", "compiled", "arithmetic", "files", "checks", "extras"),
    *("names", "workers", "elementary", "rounding", "inputs", "data", "frozen", "certificate"),
    *("explanation", "bundle"),
    *(
        "export",
        "selftest",
        "signature",
        "trigger",
        "plot",
        "report",
        "monitoring",
        "integrations",
    ),
]
TORCH_HALF = ["nn", "freezing", "losses", "training", "transport", "estimators"]
ORDER = ["_engine", *NUMPY_HALF, *TORCH_HALF, "cli"]
PACKAGES = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
PAGES = sorted([*PACKAGE.parents[1].glob("*.md"), *PACKAGE.parents[1].glob("docs/**/*.md")])
ROOMS = [
    "estimators",
    "explanation",
    "integrations",
    "monitoring",
    "nn",
    "plot",
    "training",
    "transport",
    "trigger",
]  # with public names
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


def test_arrays_are_scored_without_arrow_and_pandas(tmp_path: Path) -> None:
    """They take longer to import than everything else that a service does at its start."""
    small().save(tmp_path / "model.isotone")
    output = run_without_torch(
        f"""
        import sys, numpy, isotone
        frozen = isotone.load({str(tmp_path / "model.isotone")!r})
        print(isotone.certify(frozen).holds, len(frozen.score(numpy.zeros((2, 3)))))
        print([name for name in ("pyarrow", "pandas") if name in sys.modules])
        """
    )
    assert output.split("\n")[:2] == ["True 2", "[]"]


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
    listed = isotone.__dir__()  # what completion shows: also a module that is loaded is there once
    assert len(listed) == len(set(listed))
    assert run_without_torch("import isotone; print(isotone.plot.__name__)") == "isotone.plot\n"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        isotone.nothing  # noqa: B018


@pytest.mark.parametrize("package", ROOMS)
def test_every_public_name_of_a_package_resolves(package: str) -> None:
    room = getattr(isotone, package)
    assert room.__all__ == list(room._HOME)
    assert not set(room.__all__) & set(isotone.__all__)  # one public place for each name
    assert not set(room.__all__) & {path.stem for path in (PACKAGE / package).iterdir()}
    for name, home in room._HOME.items():
        module = importlib.import_module(f"isotone.{package}.{home}")
        assert getattr(room, name) is getattr(module, name)
    with pytest.raises(AttributeError, match=f"module 'isotone.{package}' has no attribute 'no'"):
        room.no  # noqa: B018


def test_packages_load_no_torch_before_a_name_is_used() -> None:
    rooms = ", ".join(f"isotone.{package}" for package in ROOMS)
    asked = "isotone.trigger.Exposure, isotone.files.replacing"
    assert run_without_torch(f"import isotone; {rooms}; {asked}; print(1)")
    output = run_without_torch(
        """
        import isotone
        try:
            isotone.transport.Schedule
        except ImportError as error:
            print(error)
        """
    )
    assert output.startswith("`isotone.transport.Schedule` trains networks and needs torch")


def reached(code: str) -> set[str]:
    """Dotted names of the library that code imports or mentions, as `isotone.nn.Init`."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "isotone":
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("isotone.")}
        elif isinstance(node, ast.Attribute) and re.match(r"isotone\.\w", ast.unparse(node)):
            found.add(".".join(ast.unparse(node).split("(")[0].split(".")[:3]))
    return found


def is_public(name: str) -> bool:
    """A name of `isotone`, or one that a public module or package offers."""
    _, first, *rest = name.split(".")
    if first in ("__file__", "__version__"):
        return True
    if first not in isotone._MODULES:
        return first in isotone.__all__
    module = getattr(isotone, first)
    if not rest or name == "isotone.export.json":  # a format with a reader
        return True
    offered = getattr(module, "__all__", vars(module))
    return len(rest) == 1 and rest[0] in offered and rest[0][0] != "_"


@pytest.mark.parametrize("folder", ["studies", "bench", "demo"])
def test_studies_bench_and_demo_use_public_names_only(folder: str) -> None:
    paths = sorted((PACKAGE.parents[1] / folder).rglob("*.py"))
    assert len(paths) > 3
    for path in paths:
        assert [name for name in reached(path.read_text()) if not is_public(name)] == [], path


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_show_public_names_only(page: Path) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    assert [name for name in reached(code) if not is_public(name)] == []


@pytest.mark.parametrize(
    ("code", "public"),
    [
        ("from isotone import freeze, losses, trigger", True),
        ("from isotone.transport import Schedule", True),
        ("import isotone\nisotone.trigger.choose(1)\nisotone.load('m').score", True),
        ("from isotone import _engine", False),
        ("from isotone.export.native.cpp import RUNTIME", False),
        ("from isotone.transport.shapes import Circles", False),
        ("import isotone.training.rows", False),
        ("import isotone\nisotone.training.fused", False),
        ("import isotone\nisotone.rounding", False),
    ],
)
def test_reaching_past_public_names_is_seen(code: str, public: bool) -> None:
    assert all(map(is_public, reached(code))) is public


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
