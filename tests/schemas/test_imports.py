"""What importing the data contracts costs: every command and every device pays it."""

import subprocess
import sys

HEAVY = ("tensorflow", "tf_keras", "keras", "apache_beam", "tfx", "google.protobuf", "pyarrow", "pandas")


def imported_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True, cwd="/"
    )
    return set(done.stdout.split())


def test_schemas_import_neither_tensorflow_nor_beam() -> None:
    assert not imported_by("import tfx_edge.schemas").intersection(HEAVY)


def test_the_package_itself_imports_nothing_heavy() -> None:
    assert not imported_by("import tfx_edge").intersection((*HEAVY, "numpy", "pydantic"))


def test_the_top_level_package_chooses_keras_2_before_tensorflow_can_be_imported() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os; os.environ.pop('TF_USE_LEGACY_KERAS', 0); import tfx_edge; print(os.environ['TF_USE_LEGACY_KERAS'])",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout.strip() == "1"


def test_artifact_types_import_by_the_path_that_is_their_name() -> None:
    names = "CalibrationData EdgeReport QuantizationPlan"
    code = f"""
import importlib
for name in {names.split()}:
    path = getattr(importlib.import_module("tfx_edge"), name).TYPE_NAME
    module, attribute = path.rsplit(".", 1)
    assert getattr(importlib.import_module(module), attribute).TYPE_NAME == path
    assert path == "tfx_edge." + name
    assert not getattr(importlib.import_module(module), attribute).PROPERTIES
"""
    assert "tfx.types.artifact" in imported_by(code)


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    imported_by("import tfx_edge\nassert not hasattr(tfx_edge, 'CalibrationDate')\nassert 'CalibrationData' in dir(tfx_edge)")
