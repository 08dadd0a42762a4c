"""Trains models with aibox in float32 and in bf16, same data, settings and seeds, and compares.

    python precision.py --data DIR --results runs.jsonl

Prints one line per run, and then the tables of docs/quality.md as Markdown. prepare.py
makes DIR. Runs that the results file already has are not repeated.
"""

import argparse
import json
import pathlib
import statistics

import aibox_jobs
import sets

PRECISIONS = ("float32", "bf16")
MODELS = ("wide_deep", "deepfm", "dcn_v2", "dlrm")

HEAD = """
{name}: {train} training examples, {test} held out; {seeds} seeds.

| model | AUC, float32 | AUC, bf16 | difference | log loss, float32 | log loss, bf16 | difference |
| --- | --- | --- | --- | --- | --- | --- |
"""


def lines(path, header):
    with open(path, encoding="utf-8") as f:
        return sum(1 for _ in f) - header


def read_results(path):
    """The runs that are done: {[set, examples, model, seed, precision]: (AUC, log loss)}."""
    if not path.exists():
        return {}
    runs = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {tuple(r["run"]): (r["auc"], r["log_loss"]) for r in runs}


def train(run, args, settings, done):
    """One run, unless it is done."""
    if run in done:
        return
    name, examples, model, seed, precision = run
    own = sets.settings_of(settings, name, model)
    if args.epochs:
        own["epochs"] = args.epochs
    directory = args.data.resolve() / name
    contents = aibox_jobs.job(name, model, own, seed, directory, examples)
    contents["engine"] = {"precision": precision}
    area, loss = aibox_jobs.run(
        args.aibox, contents, directory / "test.tsv", args.work, args.threads
    )
    done[run] = (area, loss)
    line = json.dumps({"run": run, "auc": area, "log_loss": loss})
    print(line, flush=True)
    with open(args.results, "a", encoding="utf-8") as f:
        f.write(line + "\n")


def mean(values):
    """The mean and the standard deviation of the values, as text."""
    return f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"


def difference(exact, rounded):
    """The mean difference of the seeds' pairs, with its standard error."""
    d = [b - a for a, b in zip(exact, rounded, strict=True)]
    return f"{statistics.mean(d):+.4f} ± {statistics.stdev(d) / len(d) ** 0.5:.4f}"


def table(name, examples, test, args, done):
    text = HEAD.format(name=name, train=examples, test=test, seeds=len(args.seeds))
    for model in args.models:
        cells = [model]
        for metric in (0, 1):
            exact, rounded = (
                [done[name, examples, model, seed, p][metric] for seed in args.seeds]
                for p in PRECISIONS
            )
            cells += [mean(exact), mean(rounded), difference(exact, rounded)]
        text += f"| {' | '.join(cells)} |\n"
    return text


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="directory that prepare.py wrote"
    )
    parser.add_argument("--results", required=True, type=pathlib.Path, help="file of runs")
    parser.add_argument("--aibox", default="../../bin/aibox", help="path of the aibox binary")
    parser.add_argument("--settings", default="settings.yaml")
    parser.add_argument(
        "--sets", nargs="+", default=sets.COMPARED, choices=sets.COMPARED, help="default: all"
    )
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(1, 11)))
    parser.add_argument("--epochs", type=int, help="instead of those of the settings")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--work",
        type=pathlib.Path,
        default=pathlib.Path("/tmp/aibox-precision"),
        help="directory for job files and models",
    )
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    settings, done, tables = sets.load_settings(args.settings), read_results(args.results), ""
    for name in args.sets:
        header = bool(sets.SCHEMAS[name]["header"])
        examples = lines(args.data / name / "train.tsv", header)
        for model in args.models:
            for seed in args.seeds:
                for precision in PRECISIONS:
                    train((name, examples, model, seed, precision), args, settings, done)
        tables += table(name, examples, lines(args.data / name / "test.tsv", header), args, done)
    print(tables)


if __name__ == "__main__":
    main()
