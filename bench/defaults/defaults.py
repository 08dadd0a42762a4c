"""Compares settings over many small sets: which defaults serve best?

    python defaults.py --binary ../../bin/aibox --data DIR --models lr --seeds 1 2 3 \\
        --settings default optimizer.rows.learning_rate=0.1,optimizer.dense.learning_rate=0.01

A setting is a comma-separated list of overrides of a job file; "default" has none. Differences are relative to the
first setting. Results are kept in DIR/results.jsonl; runs with a result there are not repeated. Missing generated sets
are drawn into DIR. For the others, prepare.py of bench/peers writes DIR/NAME/fit.tsv and valid.tsv; sets without these
files are left out.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

SETS = json.loads((pathlib.Path(__file__).parent / "sets.json").read_text(encoding="utf-8"))


def job(name, directory, model="lr"):
    """The job file of a set, with the parts of its data on which settings are chosen."""
    spec = SETS[name]
    if "generate" in spec:
        data = {"train": [str(directory / name / "train.tsv")], "eval": [str(directory / name / "eval.tsv")], "format": "tsv"}
        sections = {"generate": {**spec["generate"], "train_examples": spec["rows"], "eval_examples": spec["eval"]}}
    else:
        data = {"train": [str(directory / name / "fit.tsv")], "eval": [str(directory / name / "valid.tsv")], **spec["data"]}
        sections = {}
    return {"name": name, "data": data, "model": {"kind": model}, "output": {"model_dir": str(directory / "model"), "tensorboard": "none"}, **sections}


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")


def prepare(binary, directory):
    """Draws the generated sets, and returns the names of all sets that exist."""
    names = []
    for name, spec in SETS.items():
        if "generate" in spec and not (directory / name / "eval.tsv").exists():
            (directory / name).mkdir(parents=True, exist_ok=True)
            (directory / "job.yaml").write_text(json.dumps(job(name, directory)), encoding="utf-8")
            call(binary, "generate", str(directory / "job.yaml"))
        if all(pathlib.Path(p).exists() for p in job(name, directory)["data"]["train"]):
            names.append(name)
    return names


def run(binary, directory, name, model, setting, seed):
    """AUC and log loss of one run."""
    (directory / "job.yaml").write_text(json.dumps(job(name, directory, model)), encoding="utf-8")
    sets = [] if setting == "default" else setting.split(",")
    flags = [part for s in [*sets, f"seed={seed}", "training.accept_diverged=true"] for part in ("--set", s)]
    call(binary, "train", str(directory / "job.yaml"), *flags)
    report = json.loads((directory / "model" / "summary.json").read_text(encoding="utf-8"))["eval"]
    return {"auc": report["auc"], "log_loss": report["log_loss"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="../../bin/aibox")
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--models", nargs="+", required=True)
    parser.add_argument("--settings", nargs="+", required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--sets", nargs="+")
    args = parser.parse_args()
    names = [n for n in prepare(args.binary, args.data) if not args.sets or n in args.sets]
    path = args.data / "results.jsonl"
    known = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            known[tuple(entry["run"])] = entry
    for model in args.models:
        for seed in args.seeds:
            for name in names:
                for setting in args.settings:
                    key = (name, model, setting, seed)
                    if key not in known:
                        known[key] = {"run": key, **run(args.binary, args.data, *key)}
                        with path.open("a", encoding="utf-8") as f:
                            f.write(json.dumps(known[key]) + "\n")
        table(model, names, args, known)


def table(model, names, args, known):
    """Prints, for each setting, the mean difference to the first one over all sets, with its standard error over the
    seeds, and the number of sets on which the setting is better."""
    base = args.settings[0]
    print(f"\n| {model}: setting | AUC | sets better | log loss | sets better | worst set, AUC |\n| --- | --- | --- | --- | --- | --- |")
    for setting in args.settings:
        cells, worst = [], 0.0
        for metric, sign in (("auc", 1), ("log_loss", -1)):
            by_set = [[known[(n, model, setting, s)][metric] - known[(n, model, base, s)][metric] for s in args.seeds] for n in names]
            means = [statistics.mean(d) for d in by_set]
            if metric == "auc":
                worst = min(means)
            error = math.sqrt(sum(statistics.variance(d) / len(d) for d in by_set)) / len(by_set) if len(args.seeds) > 1 else math.nan
            cells += [f"{statistics.mean(means):+.4f} ± {error:.4f}", f"{sum(sign * m > 0 for m in means)} of {len(names)}"]
        print(f"| {setting} | {' | '.join(cells)} | {worst:+.4f} |", flush=True)


if __name__ == "__main__":
    main()
