"""Tries options that might make models learn better, at no cost in serving.

    python options.py --data DIR --fresh DIR2 --models deepfm dcn_v2 dlrm --seeds 1 2 3 4 5 6 7 8 9 10

Models train in PyTorch with aibox's semantics, so that options can be tried before aibox has them. They use the
settings that usual.py has chosen for aibox in DIR, but not the data of usual.py's tables: generated sets are those of
prepare.py with --seed 2 in DIR2; on the others, models train on fit.tsv and are measured on valid.tsv. The runs of a
seed begin alike, so differences are paired. Results are kept in DIR2/options.jsonl; runs with a result there are not
repeated.
"""

import argparse
import math
import pathlib
import statistics

import numpy as np
import torch
from torch.nn import functional

import quality_torch
import sets
import usual
import usual_report
import usual_torch
import zoo_torch

# Each is a separate run, named by its difference from the settings.
RUNS = {
    "as chosen": {},
    "weight_decay 0.02 for table_l2": {"weight_decay": 0.02},
    "weight_decay 0.1 for table_l2": {"weight_decay": 0.1},
    "neither weight_decay nor table_l2": {"table_l2": 0.0},
    "rates fall to 0, linearly": {"fall": True},
    "rows start at 0": {"init_stddev": 0.0},
    "rows start from N(0, 0.001)": {"init_stddev": 0.001},
    "rows start from N(0, 0.03)": {"init_stddev": 0.03},
    "L2 of 0.001 over the root of a row's uses": {"l2_by_uses": 1e-3},
    "half the rate for fields of many values": {"field_rate": 0.5},
    "twice the rate for fields of many values": {"field_rate": 2.0},
}
AVERAGES = {  # computed beside each run: the decay of the average, and whether rows are averaged, too
    "network averaged, 0.98": (0.98, False),
    "network averaged, 0.995": (0.995, False),
    "network and rows averaged, 0.98": (0.98, True),
    "network and rows averaged, 0.995": (0.995, True),
}
CALIBRATED = "output calibrated on the last quarter of the first epoch"
AVERAGED_RUNS = ("as chosen", "rates fall to 0, linearly")


class Table(quality_torch.Table):
    """With L2 of the whole table, a factor of the rate, rates by row, and L2 by a row's uses."""

    def __init__(self, rows, width, settings, row_rates, first):
        super().__init__(rows, width, settings)
        self.row_rates, self.factor = row_rates, 1.0
        self.first = first  # how many values of a row have their own denominator: the linear weight, if there is one
        self.uses = torch.zeros(rows, 1)

    def push(self, unique, leaf):
        s, old = self.settings, self.values[unique].clone()
        self.uses[unique] += 1
        if s.get("l2_by_uses"):
            leaf.grad += s["l2_by_uses"] / self.uses[unique].sqrt() * old
        super().push(unique, leaf)
        step = (self.values[unique] - old) * self.factor
        self.values[unique] = old
        self.values[unique] += step * self.row_rates[unique]
        rate = s["row_learning_rate"] * self.factor
        if s.get("weight_decay"):
            self.values *= 1 - rate * s["weight_decay"]
        elif s["table_l2"]:
            for part in (slice(0, self.first), slice(self.first, None)):
                if self.second[:, part].shape[1]:
                    root = self.second[:, part].mean(1, keepdim=True).sqrt() + s["epsilon"]
                    self.values[:, part] *= torch.exp(-rate * s["table_l2"] / root)
        self.values[0] = 0


class Run(quality_torch.Run):
    """A run that begins at the log odds. It keeps averages, and the predictions of the last quarter of the first epoch."""

    def __init__(self, model, examples, rows, settings):
        settings = {**settings, "tower_dense": usual_torch.with_indicators(settings["tower_dense"], examples)}
        super().__init__(model, examples, rows, settings)
        rates = torch.ones(rows, 1)
        for field in examples.fields:
            values = np.unique(field)
            if len(values) > len(examples) / 50:
                rates[values] = settings.get("field_rate", 1.0)
        values = self.table.values
        self.table = Table(*values.shape, settings, rates, int(self.has_linear))
        self.table.values = values
        self.settings = settings
        odds = float(examples.labels.mean())
        with torch.no_grad():
            usual_torch.output_bias(self.net).fill_(math.log(odds / (1 - odds)))
        self.averages = {name: self.state(both) for name, (_, both) in AVERAGES.items()}
        self.step, self.first = 0, []

    def state(self, both):
        own = [p.detach().clone() for p in self.net.parameters()]
        return own + ([self.table.values.clone()] if both else [])

    def all_epochs(self, inputs, labels):
        s = self.settings
        steps = s["epochs"] * math.ceil(len(labels) / s["batch_size"])
        for epoch in range(s["epochs"]):
            for batch in torch.randperm(len(labels)).split(s["batch_size"]):
                self.table.factor = 1 - self.step / steps if s.get("fall") else 1.0
                for group in self.optimizer.param_groups:
                    group["lr"] = s["dense_learning_rate"] * self.table.factor
                ids, widths, dense = inputs[0][batch], inputs[1], inputs[2][batch]
                unique, leaf, index = self.table.pull(ids)
                logits = self.logits(ids, widths, dense, leaf, index)
                if epoch == 0 and self.step >= steps / s["epochs"] * 0.75:
                    self.first.append((logits.detach(), labels[batch]))
                self.optimizer.zero_grad()
                functional.binary_cross_entropy_with_logits(logits, labels[batch]).backward()
                self.optimizer.step()
                self.table.push(unique, leaf)
                self.average()

    @torch.no_grad()
    def average(self):
        """The averages forget their start as Adam's do: early on they are plain means."""
        self.step += 1
        live = [*self.net.parameters(), self.table.values]
        for name, (decay, _) in AVERAGES.items():
            share = max(1 - decay, 1 / self.step)
            for average, value in zip(self.averages[name], live):
                average.lerp_(value, share)

    @torch.no_grad()
    def use(self, name):
        for value, average in zip([*self.net.parameters(), self.table.values], self.averages[name]):
            value.copy_(average)


def calibration(first):
    """Scale and shift of the logit that fit predictions made before their examples were trained on."""
    logits, labels = (torch.cat(x) for x in zip(*first))
    line = torch.tensor([1.0, 0.0], requires_grad=True)
    optimizer = torch.optim.LBFGS([line], max_iter=100)

    def loss():
        optimizer.zero_grad()
        value = functional.binary_cross_entropy_with_logits(line[0] * logits + line[1], labels)
        value.backward()
        return value

    optimizer.step(loss)
    return line.detach().double()


def measure(model, data, settings, seed, averages):
    """AUC and log loss at the end of one run, and those of the averages and scalings computed beside it."""
    a, b, rows = data
    torch.manual_seed(seed)
    run = Run(model, a, rows, settings)
    run.all_epochs(quality_torch.tensors(a), torch.from_numpy(a.labels))
    inputs, scores = quality_torch.tensors(b), {}

    def score(p):
        return [float(quality_torch.auc(b.labels, p)), float(quality_torch.log_loss(b.labels, p))]

    p = run.predict(*inputs)
    scores[""] = score(p)
    if averages:
        scale, shift = calibration(run.first)
        clipped = np.clip(p, 1e-12, 1 - 1e-12)
        scores[CALIBRATED] = score(1 / (1 + np.exp(-(float(scale) * np.log(clipped / (1 - clipped)) + float(shift)))))
        rows_now = run.table.values.clone()
        for name in AVERAGES:
            run.table.values = rows_now.clone()
            run.use(name)
            scores[name] = score(run.predict(*inputs))
    return scores


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--fresh", required=True, type=pathlib.Path)
    parser.add_argument("--sets", nargs="+", default=list(sets.SCHEMAS), choices=sets.SCHEMAS)
    parser.add_argument("--models", nargs="+", required=True, choices=zoo_torch.MODELS)
    parser.add_argument("--runs", nargs="+", default=list(RUNS), choices=RUNS)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(1, 11)))
    args = parser.parse_args()
    torch.set_num_threads(1)
    settings = sets.load_settings("settings.yaml")
    chosen = usual.Results(args.data / "usual.jsonl")
    results = usual.Results(args.fresh / "options.jsonl")
    for model in args.models:
        differences = {}
        for name in args.sets:
            try:
                choice, _ = usual.tuned(chosen, name, model, "aibox", lambda _: usual_report.missing)
            except usual_report.Missing:
                continue
            base = {**sets.base_settings(settings, name), **choice, "row_optimizer": "adagrad", "row_l2": 0.0, "initial_accumulator": 0.0}
            data = None
            for seed in args.seeds:
                for run in args.runs:

                    def compute(run=run, seed=seed, base=base, name=name, model=model):
                        nonlocal data
                        if data is None:
                            data = load(args, name)
                        return measure(model, data, {**base, **RUNS[run]}, seed, run in AVERAGED_RUNS)

                    scores = results.get([name, model, choice, run, seed], compute)
                    if run == "as chosen":
                        plain = scores[""]
                    for extra, (auc, loss) in scores.items():
                        both = ", ".join(x for x in (run if run != "as chosen" or not extra else "", extra) if x)
                        both = differences.setdefault(both, {})
                        both.setdefault(name, []).append((auc - plain[0], loss - plain[1]))
        table(model, differences)


def load(args, name):
    if name in sets.generators():
        return sets.load_pair(args.fresh, name, "train", "test", indicators=True)
    return sets.load_pair(args.data, name, "fit", "valid", indicators=True)


def summed_up(pairs):
    """Mean difference of each metric, with its standard error and the sign of better."""
    found = []
    for metric, sign in usual_report.METRICS.values():
        d = [p[metric] for p in pairs]
        error = statistics.stdev(d) / math.sqrt(len(d)) if len(d) > 1 else math.nan
        found.append((statistics.mean(d), error, sign))
    return found


def line(cells, pairs):
    """A row of a table: the cells and the mean difference of each metric."""
    return f"| {' | '.join([*cells, *(f'{d:+.4f} ± {e:.4f}' for d, e, _ in summed_up(pairs))])} |"


def table(model, differences):
    """Prints mean differences to the chosen settings, with their standard errors over the seeds."""
    print(f"\n| {model} | AUC | better on | worse on | log loss | better on | worse on |\n|{' --- |' * 7}")
    for option, by_set in differences.items():
        if option == "as chosen":
            continue
        cells = [option]
        for parts in zip(*map(summed_up, by_set.values())):
            error = math.sqrt(sum(e**2 for _, e, _ in parts)) / len(parts)
            cells += [
                f"{statistics.mean(d for d, _, _ in parts):+.4f} ± {error:.4f}",
                f"{sum(sign * d > 2 * e for d, e, sign in parts)} of {len(parts)}",
                f"{sum(sign * d < -2 * e for d, e, sign in parts)}",
            ]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
