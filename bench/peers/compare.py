"""Trains every model with aibox and with PyTorch, same data and settings, and compares.

    python compare.py --data DIR --aibox ../../bin/aibox

Prints one line per run and writes the tables as Markdown. README.md says what is
compared; prepare.py makes DIR, settings.yaml holds the settings of both sides.
"""

import argparse
import pathlib
import statistics
import subprocess

import torch

import aibox_jobs
import quality_torch
import sets
import zoo_torch

# What this program writes of the page lies between the two headings.
BEGIN, END = "## The same settings on both sides\n", "## PyTorch as people use it\n"

PAGE = """
Held-out AUC and log loss of each model of the zoo, trained by `aibox` and by a
PyTorch implementation of the same model with the same settings: mean of {seeds}
seeds, each seed in brackets. The settings were chosen with PyTorch on the last
10 % of the training part. [bench/peers](../bench/peers/README.md) has the commands.

PyTorch {torch}; {aibox}.
"""

SET = """
### {name}

{train} training examples, {test} held out, {positives} of them positive; the standard
error of one AUC is about {error:.3f}. Best model by mean AUC: {best}.

| model | AUC, aibox | AUC, PyTorch | difference | log loss, aibox | log loss, PyTorch | difference |
| --- | --- | --- | --- | --- | --- | --- |
"""


def standard_error(area, positives, negatives):
    """Standard error of an AUC (Hanley and McNeil, Radiology 143, 1982)."""
    q1, q2 = area / (2 - area), 2 * area * area / (1 + area)
    square = area * (1 - area) + (positives - 1) * (q1 - area**2) + (negatives - 1) * (q2 - area**2)
    return (square / (positives * negatives)) ** 0.5


def cell(values):
    return f"{statistics.mean(values):.4f} ({', '.join(f'{v:.4f}' for v in values)})"


def table(name, results, train_set, test_set):
    """The Markdown section of one set; results[model][side] is a list of (AUC, log loss)."""
    rows, means = [], {"aibox": {}, "PyTorch": {}}
    for model, sides in results.items():
        cells = [model]
        for metric in (0, 1):
            ours, theirs = ([run[metric] for run in sides[s]] for s in ("aibox", "PyTorch"))
            difference = statistics.mean(ours) - statistics.mean(theirs)
            cells += [cell(ours), cell(theirs), f"{difference:+.4f}"]
        rows.append(f"| {' | '.join(cells)} |\n")
        for side, runs in sides.items():
            means[side][model] = statistics.mean(area for area, _ in runs)
    best = {side: max(areas, key=areas.get) for side, areas in means.items()}
    positives = int(test_set.labels.sum())
    top = max(means["PyTorch"].values())
    head = SET.format(
        name=name,
        train=len(train_set),
        test=len(test_set),
        positives=positives,
        error=standard_error(top, positives, len(test_set) - positives),
        best=", ".join(f"{side} {m} {means[side][m]:.4f}" for side, m in best.items()),
    )
    return head + "".join(rows)


def compare_set(name, args, settings):
    train_set, test_set, rows = sets.load_pair(args.data, name, "train", "test")
    directory = args.data.resolve() / name
    results = {}
    for model in args.models:
        own = sets.settings_of(settings, name, model)
        sides = results[model] = {"aibox": [], "PyTorch": []}
        for seed in args.seeds:
            contents = aibox_jobs.job(name, model, own, seed, directory, len(train_set))
            scores = {
                "aibox": aibox_jobs.run(
                    args.aibox, contents, directory / "test.tsv", args.work, args.threads
                ),
                "PyTorch": quality_torch.train(model, train_set, test_set, rows, own, seed)[-1],
            }
            for side, (area, loss) in scores.items():
                sides[side].append((area, loss))
                print(f"{name} {model} seed {seed} {side}: {area:.4f} {loss:.4f}", flush=True)
    return table(name, results, train_set, test_set)


def own_parts(page):
    """What is written by hand: the page up to BEGIN and from END on, or these headings alone."""
    text = page.read_text(encoding="utf-8") if page.exists() else BEGIN
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return before + BEGIN, end and "\n" + end + after


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="directory that prepare.py wrote"
    )
    parser.add_argument("--aibox", default="../../bin/aibox", help="path of the aibox binary")
    parser.add_argument("--settings", default="settings.yaml")
    parser.add_argument(
        "--sets",
        nargs="+",
        default=sets.COMPARED,
        choices=sets.COMPARED,
        help="default: all; those that prepare.py did not write must be left out",
    )
    parser.add_argument(
        "--models", nargs="+", default=list(zoo_torch.MODELS), choices=zoo_torch.MODELS
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=1, help="threads of each side")
    parser.add_argument(
        "--work",
        type=pathlib.Path,
        default=pathlib.Path("/tmp/aibox-peers"),
        help="directory for job files and models",
    )
    parser.add_argument("--output", default="../../docs/quality.md", type=pathlib.Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.work.mkdir(parents=True, exist_ok=True)
    settings = sets.load_settings(args.settings)
    version = subprocess.run([args.aibox, "version"], capture_output=True, text=True, check=True)
    page = PAGE.format(
        seeds=len(args.seeds), torch=torch.__version__, aibox=version.stdout.splitlines()[0]
    )
    before, after = own_parts(args.output)
    for name in args.sets:
        page += compare_set(name, args, settings)
        args.output.write_text(before + page + after, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
