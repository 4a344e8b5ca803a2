"""The built wheel, installed with its base dependencies alone, outside the checkout."""

import importlib.metadata
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import run_reports
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what git would archive, so that nothing lying about gets in, and no build folder into the checkout."""
    folder = tmp_path_factory.mktemp("source")
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in files.stdout.decode().rstrip("\0").split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def build(what: str, source: Path, target: Path) -> Path:
    """Builds `wheel` or `sdist` as an installer does, but with this environment's setuptools."""
    code = f"from setuptools import build_meta; build_meta.build_{what}({str(target)!r})"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=source, capture_output=True)
    (built,) = (path for path in target.iterdir() if path.suffix == {"wheel": ".whl", "sdist": ".gz"}[what])
    return built


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel and what its base needs, and nothing else.

    The packages are linked in from this environment, since tests don't reach a package registry.
    """
    return environment_with(wheel, closure(("tfx-edge",), sys.path), tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def device(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the extra `device`; tuf's client needs packages that the environment of a device has, where there is one."""
    own = Path(sys.prefix) / "device" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    path = [str(own)] if own.is_dir() else sys.path
    needed = closure(("tfx-edge", "device"), sys.path, path)
    return environment_with(wheel, needed, tmp_path_factory.mktemp("device"))


def environment_with(wheel: Path, distributions: list[importlib.metadata.Distribution], folder: Path) -> Path:
    """The Python of a new environment with the wheel, and links to some distributions."""
    uv = [sys.executable, "-m", "uv", "--quiet", "--offline", "--no-config"]
    subprocess.run([*uv, "venv", "--python", sys.executable, folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    (target,) = (folder / "env" / "lib").glob("python*/site-packages")
    for distribution in distributions:
        for file in distribution.files or ():
            source = Path(distribution.locate_file(file))
            if ".." not in file.parts and source.is_file():
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                if not (target / file).exists():
                    (target / file).symlink_to(source)
    subprocess.run([*uv, "pip", "install", "--no-deps", "--python", python, wheel], check=True, cwd=folder)
    return python


def closure(name: tuple[str, ...], own: list[str], others: list[str] | None = None) -> list[importlib.metadata.Distribution]:
    """The distributions that one needs, without itself.

    Args:
        name: its name, and extras of it.
        own: where it is looked for.
        others: where what it needs is looked for; None: there too.
    """
    found: dict[str, importlib.metadata.Distribution] = {}
    asked = {name}
    todo = [(name[0], name[1:], own)]
    while todo:
        distribution_name, extras, path = todo.pop()
        (distribution, *_) = importlib.metadata.distributions(name=distribution_name, path=path)
        found[distribution_name] = distribution
        for text in distribution.requires or ():
            requirement = Requirement(text)
            wanted = (requirement.name, *sorted(requirement.extras))
            marked = requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras))
            if marked and wanted not in asked:
                asked.add(wanted)
                todo.append((requirement.name, tuple(requirement.extras), others or own))
    del found[name[0]]
    return list(found.values())


def run(python: Path, *arguments: str) -> str:
    return subprocess.run([python, *arguments], capture_output=True, text=True, check=True, cwd="/").stdout


def test_the_wheel_holds_the_package_and_the_json_schemas_and_nothing_of_the_checkout(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.split("/")[1] for name in names if name.startswith("tfx_edge/") and name.count("/") > 1}
    assert {"schemas", "report", "optimize", "litert", "components", "pipelines", "cli"} <= folders
    assert not folders & {"tests", "benchmarks", "docs", "requirements"}
    assert "tfx_edge/setup.py" not in names
    assert {
        "tfx_edge/py.typed",
        "tfx_edge/schemas/json/GateConfig.json",
        "tfx_edge/schemas/targets/tflm.json",
        "tfx_edge/report/templates/page.html",
    } <= set(names)
    assert all(name.startswith(("tfx_edge/", "tfx_edge-")) for name in names)


def test_the_source_archive_builds_the_same_wheel(wheel: Path, source: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", source, tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = (path for path in tmp_path.iterdir() if path.is_dir())

    def contents(path: Path) -> dict[str, int]:
        return {file.filename: file.CRC for file in zipfile.ZipFile(path).infolist()}

    assert contents(build("wheel", unpacked, tmp_path)) == contents(wheel)


def test_the_base_runs_flatbuffers_without_tensorflow(base: Path) -> None:
    code = (
        "import importlib.util, tfx_edge.schemas, tfx_edge.litert.runner, tfx_edge.litert.inspect; "
        "print(tfx_edge.__file__, [m for m in ('tensorflow', 'tfx', 'apache_beam', 'tf_keras') if importlib.util.find_spec(m)])"
    )
    path, found = run(base, "-c", code).split(" ", 1)
    assert "site-packages" in path
    assert found.strip() == "[]"


def test_the_base_has_the_command_and_says_which_extra_a_command_needs(base: Path, tmp_path: Path) -> None:
    command = base.with_name("tfx-edge")
    assert "demo" in subprocess.run([command, "--help"], capture_output=True, text=True, check=True, cwd="/").stdout
    demo = subprocess.run([command, "demo", "--home", tmp_path], capture_output=True, text=True, check=False, cwd="/")
    assert demo.returncode == 1
    assert demo.stderr == "error: tfx-edge demo: TFX is not installed; pip install 'tfx-edge[tfx]'\n"


def test_the_base_says_which_extra_a_page_needs(base: Path, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text(run_reports.gate_report().to_json())
    command = [base.with_name("tfx-edge"), "report", tmp_path / "report.json", "-o", tmp_path / "report.html"]
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert (made.returncode, made.stderr) == (1, "error: the report's page: jinja2 is not installed; pip install 'tfx-edge[report]'\n")


def test_the_base_signs_channels_with_keys_in_files(base: Path, tmp_path: Path) -> None:
    command = [
        base.with_name("tfx-edge"),
        "channel",
        "init",
        tmp_path / "channels",
        "canary",
        "--keyring",
        tmp_path / "keys" / "keyring.json",
    ]
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert (made.returncode, made.stderr) == (0, "")
    status = [base.with_name("tfx-edge"), "channel", "status", tmp_path / "channels", "canary"]
    assert "canary: verified" in subprocess.run(status, capture_output=True, text=True, check=True, cwd="/").stdout


def test_a_device_installs_the_client_without_tensorflow_and_small(device: Path, wheel: Path) -> None:
    code = (
        "import importlib.util, tfx_edge.device.client; "
        "print(tfx_edge.__file__, [m for m in ('tensorflow', 'tfx', 'apache_beam', 'tf_keras', 'google.cloud') if importlib.util.find_spec(m.split('.')[0])])"
    )
    path, found = run(device, "-c", code).split(" ", 1)
    assert "site-packages" in path and found.strip() in ("[]", "['google.cloud']"), "protobuf, which LiteRT needs, has the folder google"
    assert "device.json" in run(device, "-m", "tfx_edge.device", "--help")
    (packages,) = (device.parents[1] / "lib").glob("python*/site-packages")
    size: dict[str, int] = {}
    for file in packages.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:  # whether there is bytecode depends on who ran what before
            part = file.relative_to(packages).parts[0]
            size[part] = size.get(part, 0) + file.stat().st_size
    runs_models = ("ai_edge_litert", "numpy", "numpy.libs", "ml_dtypes", "google")
    megabytes = sum(bytes_ for name, bytes_ in size.items() if not name.startswith(runs_models)) / 1e6
    # Measured: 37 MB, of which cryptography 15, pydantic and its core 7, pygments (for rich) 5, this package and securesystemslib 3 each;
    # LiteRT and NumPy have 122. There is room for releases to grow, not for one more library of cryptography's size.
    assert megabytes < 50, size
    assert wheel.stat().st_size < 1_500_000, "1.2 MB was measured, a quarter of it published schemas"
