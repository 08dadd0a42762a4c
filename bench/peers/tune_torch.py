"""Chooses settings per set and model on the last 10 % of the training part.

    python tune_torch.py --data DIR --sets movielens --models fm

Trains with PyTorch on fit.tsv, searches along the axes below for the smallest log
loss minus AUC on valid.tsv, mean of the seeds, and writes these settings into the
settings file. Log loss alone would prefer timid settings where the base rate
drifts, AUC alone overconfident ones. The test part is never read.
"""

import argparse
import itertools

import numpy as np
import torch
import yaml

import quality_torch
import sets
import zoo_torch

AXES = [
    [
        {"row_optimizer": kind, "row_learning_rate": rate}
        for kind, rates in {
            "adagrad": (0.01, 0.03, 0.1, 0.3),
            "adam": (0.0003, 0.001, 0.003, 0.01),
        }.items()
        for rate in rates
    ],
    [{"row_l2": l2} for l2 in (0.0, 1e-5, 1e-4, 1e-3)],
    [{"dense_learning_rate": rate} for rate in (0.0003, 0.001, 0.003, 0.01)],
]
START = {
    "row_optimizer": "adagrad",
    "row_learning_rate": 0.03,
    "row_l2": 1e-4,
    "dense_learning_rate": 0.001,
}
EPOCHS = 3  # every run is scored after 1, 2 and 3


def tune(model, fit, valid, rows, base, seeds):
    """The best settings of a search along one axis after the other, until none helps.

    Returns them with their mean (AUC, log loss) on valid.
    """
    scores = {}

    def score(choice):
        key = tuple(choice.values())
        if key not in scores:
            own = {**base, **choice, "epochs": EPOCHS}
            runs = [quality_torch.train(model, fit, valid, rows, own, seed) for seed in seeds]
            by_epoch = np.mean(runs, axis=0).tolist()
            scores[key] = min(
                (loss - area, area, loss, i) for i, (area, loss) in enumerate(by_epoch, start=1)
            )
        return scores[key]

    best, before = START, None
    while best != before:
        before = best
        for axis in AXES:
            best = min(({**best, **change} for change in axis), key=score)
    _, area, loss, epochs = score(best)
    return {**best, "epochs": epochs}, area, loss


def save(path, settings):
    """Rewrites the settings file, keeping its leading comment."""
    with open(path, encoding="utf-8") as f:
        head = list(itertools.takewhile(lambda line: line.startswith("#"), f))
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(head)
        yaml.safe_dump(settings, f, sort_keys=False, default_flow_style=None)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="directory that prepare.py wrote")
    parser.add_argument("--settings", default="settings.yaml", help="read and rewritten")
    parser.add_argument("--sets", nargs="+", required=True, choices=sets.COMPARED)
    parser.add_argument(
        "--models", nargs="+", default=list(zoo_torch.MODELS), choices=zoo_torch.MODELS
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[101])
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    for name in args.sets:
        fit, valid, rows = sets.load_pair(args.data, name, "fit", "valid")
        for model in args.models:
            settings = sets.load_settings(args.settings)
            base = sets.base_settings(settings, name)
            choice, area, loss = tune(model, fit, valid, rows, base, args.seeds)
            settings["sets"][name].setdefault("models", {})[model] = choice
            save(args.settings, settings)
            print(f"{name} {model}: AUC {area:.4f}, log loss {loss:.4f}, {choice}", flush=True)


if __name__ == "__main__":
    main()
