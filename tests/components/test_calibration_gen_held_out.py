"""CalibrationGen: examples that stand in the gate's split too."""

import hashlib
from pathlib import Path

import pytest
from calibration_runs import UNIFORM, encode, failure, parsed, population, run, sampled, summary
from example_shards import example


@pytest.fixture(scope="module")
def records() -> list[bytes]:
    return encode(population())


def test_examples_that_are_in_eval_too_are_dropped_and_named(records: list[bytes], tmp_path: Path) -> None:
    free = sampled(run(tmp_path / "free", [records]))
    output = run(tmp_path / "shared", [records], held_out=[*free[2:9], example({"n": [1]})])
    assert set(free[:2] + free[9:]) <= set(sampled(output)) and not set(free[2:9]) & set(sampled(output))
    found = summary(output).overlap
    assert (found.splits, found.checked, found.found, len(found.named)) == (("eval",), 60, 7, 5)
    assert [named.digest for named in found.named] == [hashlib.sha256(r).hexdigest() for r in free[2:7]]
    first = parsed(free[2:3])
    assert found.named[0].split == "eval"
    assert found.named[0].values["name"] == first["name"][0].decode()
    assert found.named[0].values["image"] == ", ".join(map(str, first["image"].ravel()[:4])) + ", ... (6 values)"


def test_examples_that_are_in_eval_too_can_be_kept(records: list[bytes], tmp_path: Path) -> None:
    config = UNIFORM.model_copy(update={"overlap": "warn"})
    output = run(tmp_path, [records], config, held_out=records)
    assert sampled(output) == sampled(run(tmp_path / "alone", [records]))
    assert (summary(output).overlap.checked, summary(output).overlap.found) == (30, 30)


def test_examples_that_are_in_eval_too_can_be_an_error(records: list[bytes], tmp_path: Path) -> None:
    config = UNIFORM.model_copy(update={"overlap": "error"})
    text = failure(tmp_path, [records], config=config, held_out=records)
    assert text.startswith("30 of 30 examples of split 'train' are also in 'eval', the first with image: ")
    assert text.endswith("; mend the splits, or set overlap to 'drop'")


def test_a_split_that_is_all_in_eval_too_is_an_error_that_counts_them(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records[:40]], held_out=records)
    assert text == (
        "num_examples 30: split 'train' has no example to sample (40 with 0 duplicates, 40 of them also in a held-out split); "
        "give CalibrationGen another split"
    )


def test_other_splits_can_be_held_out_or_none(records: list[bytes], tmp_path: Path) -> None:
    none = run(tmp_path / "none", [records], UNIFORM.model_copy(update={"held_out": ()}), held_out=records)
    assert summary(none).overlap is None
    text = failure(tmp_path / "test", [records], config=UNIFORM.model_copy(update={"held_out": ("test",)}))
    assert text.startswith("split 'test': not in the examples at")
