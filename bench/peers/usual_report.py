"""Tables of what usual.py has measured, as Markdown.

    python usual_report.py --data DIR

Differences come with their standard error, which reflects the spread over the seeds only.
Sets and models whose runs are not complete are left out.
"""

import argparse
import math
import pathlib
import statistics

import sets
import usual
import zoo_torch

METRICS = {"AUC": (0, 1), "log loss": (1, -1)}  # index, and the sign of better


class Missing(Exception):
    """A run that the file of results lacks."""


def missing():
    raise Missing


def runs(results, name, model, seeds):
    """Scores of each side on the test part, and the validation score by which its settings were chosen."""
    scores, chosen_by = {}, {}
    for side in usual.SIDES:
        choice, chosen_by[side] = usual.tuned(results, name, model, side, lambda _: missing)
        scores[side] = [results.get(["test", name, model, side, choice, s], missing) for s in seeds]
    return scores, chosen_by


def difference(scores, metric):
    """The means of aibox and of PyTorch, their difference, and its standard error."""
    ours, theirs = ([s[metric] for s in scores[side]] for side in ("aibox", "PyTorch"))
    error = math.sqrt(sum(statistics.variance(x) / len(x) for x in (ours, theirs)))
    return statistics.mean(ours), statistics.mean(theirs), statistics.mean(ours) - statistics.mean(theirs), error


def row(cells, scores):
    for metric, _ in METRICS.values():
        ours, theirs, d, error = difference(scores, metric)
        cells = [*cells, f"{ours:.4f}", f"{theirs:.4f}", f"{d:+.4f} ± {error:.4f}"]
    return f"| {' | '.join(cells)} |"


def head(*names):
    names += tuple(f"{m}{x}" for m in METRICS for x in (", aibox", ", PyTorch", ": difference"))
    return f"| {' | '.join(names)} |\n|{' --- |' * len(names)}"


def summary(found):
    """For each model, the mean difference over the sets, and on how many aibox is ahead or behind."""
    lines = [
        "| model | sets | AUC: mean difference | ahead | behind | within 0.002 | log loss: mean difference | ahead | behind | within 0.002 |",
        "|" + " --- |" * 10,
    ]
    for model in dict.fromkeys(m for _, m in found):
        own = [scores for (_, m), (scores, _) in found.items() if m == model]
        cells = [model, str(len(own))]
        for metric, sign in METRICS.values():
            parts = [difference(scores, metric)[2:] for scores in own]
            error = math.sqrt(sum(e**2 for _, e in parts)) / len(parts)
            cells += [
                f"{statistics.mean(d for d, _ in parts):+.4f} ± {error:.4f}",
                str(sum(sign * d > 2 * e for d, e in parts)),
                str(sum(sign * d < -2 * e for d, e in parts)),
                str(sum(sign * d > -0.002 for d, _ in parts)),
            ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def best(found, name):
    """The scores of the models that each side's validation part chose, with their names."""
    own = {model: x for (n, model), x in found.items() if n == name}
    models = {side: min(own, key=lambda m: own[m][1][side]) for side in usual.SIDES}
    return models, {side: own[m][0][side] for side, m in models.items()}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(1, 11)))
    args = parser.parse_args()
    results = usual.Results(args.data / "usual.jsonl")
    found = {}
    for name in sets.SCHEMAS:
        for model in zoo_torch.MODELS:
            try:
                found[name, model] = runs(results, name, model, args.seeds)
            except Missing:
                continue
    print(head("set", "model"))
    for (name, model), (scores, _) in found.items():
        print(row([name, model], scores))
    print(f"\n{summary(found)}\n\n{head('set', 'best of aibox', 'best of PyTorch')}")
    names = [n for n, _ in found]
    for name in dict.fromkeys(n for n in names if names.count(n) > 1):
        models, scores = best(found, name)
        print(row([name, models["aibox"], models["PyTorch"]], scores))


if __name__ == "__main__":
    main()
