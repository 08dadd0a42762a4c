"""Compares aibox with PyTorch as people use it: each side in its usual way, tuned with the same budget.

    python usual.py --data DIR --aibox ../../bin/aibox --seeds 1 2 3 4 5 6 7 8 9 10

For each model, each side tries its grid below on fit.tsv, for up to 3 epochs, and takes the settings with the smallest
log loss minus AUC on valid.tsv. With these it trains on train.tsv with each seed, and is measured on test.tsv, which
nothing else reads. Results are kept in DIR/usual.jsonl; runs with a result there are not repeated. Several processes
may work on different sets or models at the same time. usual_report.py prints the tables.
"""

import argparse
import functools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch
import yaml

import aibox_jobs
import sets
import usual_torch
import zoo_torch

EPOCHS = 3
TUNING_SEED = 101


RATES = {  # learning rates of rows and of the dense network, and the averaging of the latter: a high rate leaves noise
    "linear": [(0.05, 0.01, 0), (0.1, 0.01, 0.98), (0.1, 0.03, 0.98)],
    "deep": [(0.05, 0.001, 0), (0.05, 0.003, 0.98), (0.1, 0.003, 0.98)],
}


def grid(side, model):
    """The settings that a side tries: equally many."""
    if side == "PyTorch":
        return [
            {"learning_rate": rate, "table_l2": l2}
            for rate in (0.001, 0.003, 0.01)
            for l2 in (0.0, 1e-5, 1e-4, 1e-3)
        ]
    return [
        {
            "row_learning_rate": rows,
            "dense_learning_rate": dense,
            "table_l2": l2,
            **({"averaging": averaging} if averaging else {}),
        }
        for rows, dense, averaging in RATES["linear" if model in ("lr", "fm") else "deep"]
        for l2 in (0.0, 1e-4, 3e-4, 1e-3)
    ]


class Results:
    """Scores by a key, kept in a file."""

    def __init__(self, path):
        self.path, self.known = path, {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self.known[json.dumps(entry["key"])] = entry["scores"]

    def get(self, key, compute):
        text = json.dumps(key)
        if text not in self.known:
            self.known[text] = compute()
            with self.path.open("a", encoding="utf-8") as f:
                f.write(json.dumps({"key": key, "scores": self.known[text]}) + "\n")
        return self.known[text]


@functools.cache
def load_pair(directory, name, first, second):
    return sets.load_pair(directory, name, first, second, indicators=True)


def train_torch(args, name, model, settings, seed, first, second):
    a, b, rows = load_pair(args.data, name, first, second)
    return [[float(x) for x in s] for s in usual_torch.train(model, a, b, rows, settings, seed)]


def train_aibox(args, name, model, settings, seed, first, second):
    directory = args.data.resolve() / name
    own = {**settings, "row_optimizer": "adagrad", "row_l2": 0.0, "initial_accumulator": 0.0}
    examples = sum(1 for _ in open(directory / f"{first}.tsv", encoding="utf-8"))
    job = aibox_jobs.job(name, model, own, seed, directory, examples)
    for ours in ("initial_bias", "embedding_activation"):  # as they are by default
        job["model"].pop(ours, None)
    job["optimizer"]["rows"]["table_l2"] = settings["table_l2"]
    if "averaging" in settings:
        job["optimizer"]["dense"]["averaging"] = settings["averaging"]
    job["data"]["train"] = [str(directory / f"{first}.tsv")]
    job["data"]["eval"] = [str(directory / f"{second}.tsv")]
    job["data"]["columns"] = [
        {k: v for k, v in c.items() if k != "missing"} for c in job["data"]["columns"]
    ]
    job["training"]["accept_diverged"] = True
    for path, value in settings.get("overrides", {}).items():
        *sections, key = path.split(".")
        functools.reduce(lambda at, s: at.setdefault(s, {}), sections, job)[key] = value
    job["output"] = {"model_dir": str(args.work / "model"), "tensorboard": "none"}
    (args.work / "job.yaml").write_text(yaml.safe_dump(job, sort_keys=False), encoding="utf-8")
    shutil.rmtree(args.work / "model", ignore_errors=True)
    env = {**os.environ, "GOMAXPROCS": "1"}
    command = [args.aibox, "train", str(args.work / "job.yaml")]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    summary = json.loads((args.work / "model" / "summary.json").read_text(encoding="utf-8"))
    return [[e["eval"]["auc"], e["eval"]["log_loss"]] for e in summary["epochs"]]


SIDES = {"PyTorch": train_torch, "aibox": train_aibox}


def tuned(results, name, model, side, run):
    """The best of the side's grid, with its number of epochs and its log loss minus AUC on valid.tsv.

    run makes a function that runs a choice and returns the scores after each epoch.
    """
    found = []
    for choice in grid(side, model):
        scores = results.get(["tuning", name, model, side, choice], run(choice))
        for epochs, (auc, loss) in enumerate(scores, start=1):
            if math.isfinite(loss):
                found.append((loss - auc, {**choice, "epochs": epochs}))
    score, choice = min(found, key=lambda f: f[0])
    return choice, score


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--aibox", default="../../bin/aibox")
    parser.add_argument("--settings", default="settings.yaml")
    parser.add_argument("--sets", nargs="+", default=list(sets.SCHEMAS), choices=sets.SCHEMAS)
    parser.add_argument(
        "--models", nargs="+", default=list(zoo_torch.MODELS), choices=zoo_torch.MODELS
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(1, 11)))
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = Results(args.data / "usual.jsonl")
    settings = sets.load_settings(args.settings)
    with tempfile.TemporaryDirectory() as work:
        args.work = pathlib.Path(work)
        for name in args.sets:
            for model in args.models:
                compare(args, results, sets.base_settings(settings, name), name, model)


def compare(args, results, base, name, model):
    """Tunes both sides and tests their choices with every seed."""
    for side, train in SIDES.items():

        def tune(choice, train=train):
            own = {**base, **choice, "epochs": EPOCHS}
            return lambda: train(args, name, model, own, TUNING_SEED, "fit", "valid")

        choice, _ = tuned(results, name, model, side, tune)
        print(f"{name} {model} {side}: {choice}", flush=True)
        own = {**base, **choice}
        for seed in args.seeds:
            results.get(
                ["test", name, model, side, choice, seed],
                lambda seed=seed: train(args, name, model, own, seed, "train", "test")[-1],
            )


if __name__ == "__main__":
    main()
