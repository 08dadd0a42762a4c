"""PyTorch's side of the comparison.

    python torch_side.py --data DIR           answers requests for steps, one JSON object a line
    python torch_side.py --data DIR --job ... trains on the whole log, evaluates, prints JSON

DIR holds the binary files that the Go program of this directory writes. All embeddings are
rows of one layer with sparse gradients; optimizers are SGD, as in job.yaml. The network is
compiled with its loss. The lookup of embeddings stays eager, because torch.compile does not
support sparse gradients.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import numpy
import torch
from torch.nn import functional

import models

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
import zoo_torch  # noqa: E402

ROWS = 20_000_000
INIT_STDDEV = 0.01


class Log:
    """A set of examples in memory-mapped files."""

    def __init__(self, directory, name):
        def file(ending, kind, *columns):
            mapped = numpy.memmap(directory / f"{name}.{ending}", kind, "r+")
            return torch.from_numpy(mapped.reshape(-1, *columns))

        self.labels = file("labels", numpy.float32)
        self.dense = file("dense", numpy.float32, models.DENSE)
        self.ids = file("ids", numpy.int64, models.FIELDS)

    def __len__(self):
        return len(self.labels)

    def batches(self, size, examples=None):
        """Mini-batches of that size of the first examples (None: of all)."""
        for lo in range(0, len(self) if examples is None else examples, size):
            part = slice(lo, lo + size)
            yield self.ids[part], self.dense[part], self.labels[part]


class Table:
    """The memory for embeddings, which models share: each uses as much of it as it needs."""

    def __init__(self):
        self.memory = torch.empty(ROWS * (models.DIM + 1)).normal_(0, INIT_STDDEV)

    def embedding(self, width):
        weight = self.memory[: ROWS * width].view(ROWS, width)
        return torch.nn.Embedding(ROWS, width, sparse=True, _weight=weight)


class Training:
    """A model with its optimizers."""

    def __init__(self, table, model, precision, compiled, dense_rate, row_rate):
        torch.manual_seed(1)
        self.linear = model in zoo_torch.HAS_LINEAR
        self.precision = precision
        self.embedding = table.embedding(models.DIM + self.linear)
        self.net = zoo_torch.MODELS[model](models.FIELDS, models.DENSE, models.SETTINGS)
        self.optimizers = [
            torch.optim.SGD(self.net.parameters(), lr=dense_rate, fused=True),
            torch.optim.SGD(self.embedding.parameters(), lr=row_rate),
        ]
        self.loss_of = torch.compile(self.loss_of_rows) if compiled else self.loss_of_rows

    def loss_of_rows(self, rows, dense, labels):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.precision == "bf16"):
            if self.linear:
                logits = self.net(rows[:, :, 0], rows[:, :, 1:], dense)
            else:
                logits = self.net(None, rows, dense)
        return functional.binary_cross_entropy_with_logits(logits.float(), labels)

    def gradients(self, ids, dense, labels):
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss = self.loss_of(self.embedding(ids), dense, labels)
        loss.backward()
        return loss.detach()

    def step(self, *batch):
        loss = self.gradients(*batch)
        for optimizer in self.optimizers:
            optimizer.step()
        return loss

    @torch.no_grad()
    def evaluate(self, log):
        """The log loss on a set."""
        total = 0.0
        for ids, dense, labels in log.batches(8192):
            total += self.loss_of_rows(self.embedding(ids), dense, labels).item() * len(labels)
        return total / len(log)


def serve(options):
    """Answers requests for steps until the input ends."""
    table, log = Table(), Log(options.data, "train")
    current, opened = None, {}
    for line in sys.stdin:
        r = json.loads(line)
        if r["op"] == "version":
            answer = {"version": torch.__version__, "parallel": torch.__config__.parallel_info()}
        else:
            if (r["model"], r["batch"]) != current:
                current, opened = (r["model"], r["batch"]), {}
                torch.compiler.reset()  # else further sizes would be compiled as dynamic shapes
            batches = list(log.batches(r["batch"], r["examples"]))
            variant = r["precision"], r["compiled"]
            if variant not in opened:
                opened[variant] = Training(table, r["model"], *variant, r["dense_rate"], r["row_rate"])
                opened[variant].step(*batches[0])  # compiles
            answer = take(opened[variant], batches, r["seconds"])
        print(json.dumps(answer), flush=True)


def take(training, batches, seconds):
    """Trains on the mini-batches, repeatedly, until the time is over."""
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        loss = training.step(*batches[steps % len(batches)])
        steps += 1
    spent = time.perf_counter() - begin
    return {"examples": steps * len(batches[0][2]), "seconds": spent, "loss": loss.item()}


def job(options):
    """Trains once on the whole log and measures the loss on held-out examples."""
    train, held_out = Log(options.data, "train"), Log(options.data, "eval")
    training = Training(
        Table(), options.job, options.precision, options.compiled, options.dense_rate, options.row_rate)
    training.gradients(*next(train.batches(options.batch)))  # compiles
    begin = time.perf_counter()
    for batch in train.batches(options.batch, options.examples):
        training.step(*batch)
    seconds = time.perf_counter() - begin
    result = {"examples": options.examples, "seconds": seconds, "log_loss": training.evaluate(held_out)}
    print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--job", choices=models.SECTIONS, help="model to train on the whole log")
    parser.add_argument("--examples", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--precision", choices=["float32", "bf16"])
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--dense-rate", type=float)
    parser.add_argument("--row-rate", type=float)
    options = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    if options.job:
        job(options)
    else:
        serve(options)


if __name__ == "__main__":
    main()
