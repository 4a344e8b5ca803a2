"""The search loop on trials whose cost and metric are known in closed form, so that the best can be told by enumeration."""

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tfx_edge.components.compression_tuner.search import search
from tfx_edge.components.compression_tuner.trial_store import TrialStore, open_store
from tfx_edge.schemas import (
    Between,
    ClusteringConfig,
    EdgeError,
    FineTuningConfig,
    OneOf,
    PruningConfig,
    SearchConfig,
    Techniques,
    Threshold,
    TrialResult,
)

TUNING = FineTuningConfig(label_key="label")
SPARSITIES, CLUSTERS = (0.2, 0.5, 0.8, 0.9), (4, 8, 16)
REFERENCE = TrialResult(values={}, size_bytes=9000, gzip_bytes=9000, metric=0.95, seconds=0)


def config(**changes):
    return SearchConfig(
        **{
            "techniques": Techniques(pruning=PruningConfig(fine_tuning=TUNING), clustering=ClusteringConfig(fine_tuning=TUNING)),
            "space": {"pruning.target_sparsity": OneOf(values=SPARSITIES), "clustering.clusters.*": OneOf(values=CLUSTERS)},
            "label_key": "label",
            "threshold": Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02),
            "algorithm": "grid",
            "max_trials": 100,
            **changes,
        }
    )


def formula(sparsity, clusters):
    """Bytes and accuracy: fewer weights and values are smaller and worse."""
    return round(1000 * (1.05 - sparsity) * clusters), 0.95 - 0.03 * sparsity**2 - 0.09 / clusters


def make(techniques, folder):
    sparsity = techniques.pruning.target_sparsity
    clusters = techniques.clustering.clusters["*"] if techniques.clustering else 64
    size, metric = formula(sparsity, clusters)
    Path(folder, "made").write_text(json.dumps([sparsity, clusters]))
    return TrialResult(values={}, size_bytes=size, gzip_bytes=size, metric=metric, seconds=0)


def counted(made):
    def counting(techniques, folder):
        made.append(techniques)
        return make(techniques, folder)

    return counting


def store_in(folder):
    return TrialStore(str(folder))


def untimed(report):
    return [trial.model_copy(update={"seconds": 0.0}) for trial in report.trials]


def test_a_grid_tries_every_combination_once_and_finds_the_best_that_enumeration_finds(tmp_path):
    made = []
    found = search(config(), REFERENCE, counted(made), store_in(tmp_path))
    every = {(s, c): formula(s, c) for s, c in itertools.product(SPARSITIES, CLUSTERS)}
    assert sorted((t.pruning.target_sparsity, t.clustering.clusters["*"]) for t in made) == sorted(every)
    best = min((point for point, (_, metric) in every.items() if metric >= 0.95 - 0.02), key=lambda point: every[point][0])
    assert (found.report.best["pruning.target_sparsity"], found.report.best["clustering.clusters.*"]) == best
    assert (found.techniques.pruning.target_sparsity, found.techniques.clustering.clusters) == (best[0], {"*": best[1]})
    assert json.loads(Path(found.kept, "made").read_text()) == list(best)
    assert best == (0.5, 8) and len({t.gzip_bytes for t in found.report.trials}) == 12  # not the first tried, and one alone
    assert found.tuner.get_best_hyperparameters()[0].values == found.report.best  # what TFX's files are written from


def test_the_smallest_trials_are_beyond_the_budget_and_never_win_whatever_proposes_them(tmp_path):
    for algorithm in ("grid", "random", "bayesian"):
        report = search(config(algorithm=algorithm, max_trials=12), REFERENCE, make, store_in(tmp_path / algorithm)).report
        best = next(trial for trial in report.trials if trial.values == report.best)
        beyond = [trial for trial in report.trials if not trial.feasible]
        assert best.drop <= 0.02 and best.feasible
        assert min(trial.gzip_bytes for trial in beyond) < best.gzip_bytes
        assert best.gzip_bytes == min(trial.gzip_bytes for trial in report.trials if trial.feasible)


def test_a_drop_of_exactly_max_drop_is_within_the_budget(tmp_path):
    def at_the_bound(techniques, folder):
        return make(techniques, folder).model_copy(update={"metric": 0.95 - 0.02})

    assert all(trial.feasible for trial in search(config(), REFERENCE, at_the_bound, store_in(tmp_path)).report.trials)


def test_of_a_metric_that_is_better_the_lower_a_rise_is_the_loss(tmp_path):
    def error(techniques, folder):
        result = make(techniques, folder)
        return result.model_copy(update={"metric": 1 - result.metric})

    threshold = Threshold(metric="MeanSquaredError", max_drop=0.02)
    lower = search(config(threshold=threshold), REFERENCE.model_copy(update={"metric": 1 - 0.95}), error, store_in(tmp_path / "error"))
    higher = search(config(), REFERENCE, make, store_in(tmp_path / "accuracy"))
    assert lower.report.best == higher.report.best
    assert [t.feasible for t in lower.report.trials] == [t.feasible for t in higher.report.trials]
    assert [t.drop for t in lower.report.trials] == pytest.approx([t.drop for t in higher.report.trials])


@pytest.mark.parametrize("algorithm", ["random", "bayesian"])
def test_a_seed_gives_one_search_and_another_seed_another(tmp_path, algorithm):
    space = {"pruning.target_sparsity": Between(low=0.1, high=0.95), "clustering.clusters.*": OneOf(values=CLUSTERS)}
    reports = [
        search(config(space=space, algorithm=algorithm, max_trials=9, seed=seed), REFERENCE, make, store_in(tmp_path / str(i))).report
        for i, seed in enumerate((0, 0, 1))
    ]
    assert untimed(reports[0]) == untimed(reports[1])
    assert [t.values for t in reports[0].trials] != [t.values for t in reports[2].trials]


def test_a_step_left_out_takes_its_fields_with_it(tmp_path):
    found = search(config(optional=("clustering",)), REFERENCE, make, store_in(tmp_path))
    without = [trial for trial in found.report.trials if not trial.values["clustering"]]
    assert sorted(trial.values["pruning.target_sparsity"] for trial in without) == sorted(SPARSITIES)
    assert all("clustering.clusters.*" not in trial.values for trial in without)
    assert len(found.report.trials) == len(SPARSITIES) * (len(CLUSTERS) + 1)


def test_a_failing_trial_is_a_row_and_the_search_goes_on(tmp_path):
    def failing(techniques, folder):
        if techniques.pruning.target_sparsity > 0.4:
            raise EdgeError("layer 'dense' can't be pruned")
        return make(techniques, folder)

    report = search(config(), REFERENCE, failing, store_in(tmp_path)).report
    failed = [trial for trial in report.trials if trial.error]
    assert len(report.trials) == 12 and len(failed) == 9
    assert {trial.error for trial in failed} == {"layer 'dense' can't be pruned"}
    assert all(trial.gzip_bytes is None and not trial.feasible for trial in failed)
    assert report.best["pruning.target_sparsity"] == 0.2


def test_values_that_do_not_fit_each_other_are_a_row_too(tmp_path):
    space = {"quantization.scheme": OneOf(values=("int8", "float16")), "quantization.io_type": OneOf(values=("float32", "int8"))}
    report = search(config(space=space), REFERENCE, make, store_in(tmp_path)).report
    [failed] = [trial for trial in report.trials if trial.error]
    assert failed.values == {"quantization.scheme": "float16", "quantization.io_type": "int8"}
    assert "io_type 'int8' with scheme 'float16'" in failed.error
    assert len(report.trials) == 4


def test_an_exception_that_is_no_edge_error_ends_the_search(tmp_path):
    def broken(techniques, folder):
        raise ZeroDivisionError("a defect")

    with pytest.raises(ZeroDivisionError, match="a defect"):
        search(config(), REFERENCE, broken, store_in(tmp_path))


def test_without_a_feasible_trial_one_error_names_the_nearest(tmp_path):
    strict = config(threshold=Threshold(metric="SparseCategoricalAccuracy", max_drop=0.001))
    with pytest.raises(EdgeError) as caught:
        search(strict, REFERENCE, make, store_in(tmp_path))
    text = str(caught.value)
    assert "\n" not in text
    assert "no trial of 12 keeps within max_drop 0.001" in text
    metric = formula(0.2, 16)[1]
    assert f"pruning.target_sparsity=0.2, clustering.clusters.*=16, has {metric:.4f}" in text


def test_when_every_trial_fails_the_error_has_the_first_reason(tmp_path):
    def failing(techniques, folder):
        raise EdgeError("no layer can be factorized")

    with pytest.raises(EdgeError, match="none of 12 trials gave a model; the first, pruning.*: no layer can be factorized"):
        search(config(), REFERENCE, failing, store_in(tmp_path))


def test_no_trial_is_begun_after_the_time_limit_and_the_best_until_then_counts(tmp_path):
    made = []
    lenient = Threshold(metric="SparseCategoricalAccuracy", max_drop=0.1)
    found = search(config(time_limit_s=1e-9, threshold=lenient), REFERENCE, counted(made), store_in(tmp_path))
    assert len(made) == len(found.report.trials) == 1


KILLED = """
import os, signal, sys
sys.path.insert(0, {here!r})
from pathlib import Path
import test_compression_tuner_search as tests

def make(techniques, folder):
    result = tests.make(techniques, folder)
    with open({log!r}, "a") as log:
        log.write(f"{{techniques.pruning.target_sparsity}}\\n")
    if len(Path({log!r}).read_text().splitlines()) == 7:
        os.kill(os.getpid(), signal.SIGKILL)  # in the midst of a trial
    return result

tests.search(tests.RESUMED, tests.REFERENCE, make, tests.store_in({store!r}))
"""


RESUMED = config(
    space={"pruning.target_sparsity": Between(low=0.1, high=0.95), "clustering.clusters.*": OneOf(values=CLUSTERS)},
    algorithm="bayesian",
    max_trials=10,  # the first six at random
)


def test_a_search_killed_in_a_trial_goes_on_with_it_and_ends_as_if_it_never_was(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "store"
    program = KILLED.format(here=str(Path(__file__).parent), log=str(log), store=str(folder))
    killed = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=dict(os.environ), capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()[-2000:]
    made = []
    report = search(RESUMED, REFERENCE, counted(made), store_in(folder)).report
    assert len(made) == 10 - 6  # six were whole
    straight = search(RESUMED, REFERENCE, make, store_in(tmp_path / "other"))
    assert untimed(report) == untimed(straight.report)
    assert report.best == straight.report.best


def test_a_finished_search_repeats_no_trial_and_a_longer_one_adds_to_it(tmp_path):
    first, second = [], []
    short = search(config(algorithm="random", max_trials=5), REFERENCE, counted(first), store_in(tmp_path))
    longer = search(config(algorithm="random", max_trials=8), REFERENCE, counted(second), store_in(tmp_path))
    assert (len(first), len(second)) == (5, 3)
    assert longer.report.trials[:5] == short.report.trials


def test_what_the_best_trial_made_is_kept_and_of_no_other_and_a_shorter_search_makes_its_best_anew(tmp_path):
    search(config(), REFERENCE, make, store_in(tmp_path))
    assert len(list(tmp_path.glob("*/kept"))) == 1
    made = []
    shorter = search(config(max_trials=2), REFERENCE, counted(made), store_in(tmp_path))
    assert len(made) == 1
    assert shorter.report.best == {"pruning.target_sparsity": 0.2, "clustering.clusters.*": 8}
    assert json.loads(Path(shorter.kept, "made").read_text()) == list(shorter.report.best.values())


def test_the_store_is_of_one_model_data_and_config_but_of_any_space(tmp_path):
    def folder(changed=None, reference=REFERENCE, digests=None):
        return open_store(str(tmp_path), changed or config(), reference, digests or {"model": "a"}).folder

    same = [
        config(max_trials=3),
        config(algorithm="random"),
        config(optional=("clustering",)),
        config(space={"pruning.target_sparsity": Between(low=0.1, high=0.5)}),
    ]
    assert {folder(changed) for changed in same} == {folder()}
    others = [config(seed=1), config(split="test"), config(threshold=Threshold(metric="SparseCategoricalAccuracy", max_drop=0.03))]
    different = [folder(changed) for changed in others]
    different += [folder(digests={"model": "b"}), folder(reference=REFERENCE.model_copy(update={"metric": 0.9}))]
    assert len({folder(), *different}) == 6
