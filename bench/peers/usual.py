"""aibox beside PyTorch as people use it: each side with its own ways, tuned by the same budget.

    python usual.py --data DIR --aibox ../../bin/aibox --seeds 1 2 3 4 5 6 7 8 9 10

Every side of a model tries its grid below on fit.tsv, for up to 3 epochs, and takes the
settings with the smallest log loss minus AUC on valid.tsv. With these it trains on train.tsv, with
each seed, and is measured on test.tsv, which nothing else reads. Results are kept in
DIR/usual.jsonl: what is there is not run again. The tables are printed as Markdown.
"""

import argparse
import functools
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

import torch
import yaml

import aibox_jobs
import sets
import usual_torch
import zoo_torch

HEAD = """\
| model | AUC, aibox | AUC, PyTorch | difference | log loss, aibox | log loss, PyTorch | difference |
| --- | --- | --- | --- | --- | --- | --- |
"""

EPOCHS = 3
TUNING_SEED = 101
GRIDS = {  # of equal size
    "PyTorch": [
        {"learning_rate": rate, "table_l2": l2}
        for rate in (0.001, 0.003, 0.01)
        for l2 in (0.0, 1e-5, 1e-4, 1e-3)
    ],
    "aibox": [
        {**rates, "decay": decay}
        for rates in (
            {"row_optimizer": "adagrad", "row_learning_rate": 0.05, "dense_learning_rate": 0.001},
            {"row_optimizer": "adagrad", "row_learning_rate": 0.1, "dense_learning_rate": 0.003},
            {"row_optimizer": "adam", "row_learning_rate": 0.003, "dense_learning_rate": 0.003},
        )
        for decay in (0.0, 3e-4, 3e-3, 0.02)  # of a row in a step
    ],
}


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
    own = {**settings, "row_l2": 0.0, "initial_accumulator": 0.0}
    examples = sum(1 for _ in open(directory / f"{first}.tsv", encoding="utf-8"))
    job = aibox_jobs.job(name, model, own, seed, directory, examples)
    del job["model"]["initial_bias"]
    rows = job["optimizer"]["rows"]
    rows["weight_decay"] = settings["decay"] / rows["learning_rate"]
    job["data"]["train"] = [str(directory / f"{first}.tsv")]
    job["data"]["eval"] = [str(directory / f"{second}.tsv")]
    job["data"]["columns"] = [
        {k: v for k, v in c.items() if k != "missing"} for c in job["data"]["columns"]
    ]
    job["training"]["accept_diverged"] = True
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


def tuned(args, results, base, name, model, side):
    """The best of the side's grid, with its number of epochs."""
    best = None
    for choice in GRIDS[side]:
        own = {**base, **choice, "epochs": EPOCHS}
        key = ["tuning", name, model, side, choice]
        scores = results.get(
            key, lambda own=own: SIDES[side](args, name, model, own, TUNING_SEED, "fit", "valid")
        )
        for epochs, (auc, loss) in enumerate(scores, start=1):
            if math.isfinite(loss) and (best is None or loss - auc < best[0]):
                best = (loss - auc, {**choice, "epochs": epochs})
    return best[1]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--aibox", default="../../bin/aibox")
    parser.add_argument("--settings", default="settings.yaml")
    parser.add_argument("--sets", nargs="+", required=True, choices=sets.SCHEMAS)
    parser.add_argument("--models", nargs="+", required=True, choices=zoo_torch.MODELS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(1, 11)))
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/aibox-usual"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.work.mkdir(parents=True, exist_ok=True)
    results = Results(args.data / "usual.jsonl")
    settings = sets.load_settings(args.settings)
    for name in args.sets:
        base = sets.base_settings(settings, name)
        rows = []
        for model in args.models:
            scores, notes = {}, []
            for side, train in SIDES.items():
                choice = tuned(args, results, base, name, model, side)
                notes.append(f"{name} {model} {side}: {choice}")
                scores[side] = [
                    results.get(
                        ["test", name, model, side, choice, seed],
                        lambda seed=seed: train(
                            args, name, model, {**base, **choice}, seed, "train", "test"
                        )[-1],
                    )
                    for seed in args.seeds
                ]
            print("\n".join(notes), flush=True)
            rows.append(row(model, scores["aibox"], scores["PyTorch"]))
        print(f"\n*{name}*\n\n{HEAD}" + "\n".join(rows), flush=True)


def row(model, ours, theirs):
    """A line of the table: means, and differences with their standard errors."""
    cells = [model]
    for metric in (0, 1):
        a, b = ([s[metric] for s in side] for side in (ours, theirs))
        error = math.sqrt(sum(statistics.variance(x) / len(x) for x in (a, b)))
        difference = statistics.mean(a) - statistics.mean(b)
        cells += [f"{statistics.mean(x):.4f}" for x in (a, b)] + [f"{difference:+.4f} ± {error:.4f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
