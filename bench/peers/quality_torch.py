"""Trains models of the zoo with PyTorch and prints their held-out AUC and log loss.

    python quality_torch.py --data DIR --sets movielens --models fm dcn_v2 --seeds 1 2 3

One JSON line per run. The table works as aibox's: rows start from N(0, sd) when
first seen, a mini-batch's gradients of one row are summed and applied once, only
rows of the mini-batch change (lazy Adam, Adagrad), unseen values count as zeros.
"""

import argparse
import json

import numpy as np
import torch
from torch.nn import functional

import sets
import zoo_torch


class Table:
    """The rows of all fields. Row 0 stands for no value and stays zero."""

    def __init__(self, rows, width, settings):
        self.settings = settings
        self.values = torch.randn(rows, width) * settings["init_stddev"]
        self.values[0] = 0
        adagrad = settings["row_optimizer"] == "adagrad"
        start = settings["initial_accumulator"] if adagrad else 0.0
        self.second = torch.full_like(self.values, start)
        self.first = torch.zeros_like(self.values)
        self.steps = 0

    def pull(self, ids):
        """The unique rows of ids, as a leaf, and where each id finds its row there."""
        unique, index = torch.unique(ids, return_inverse=True)
        return unique, self.values[unique].requires_grad_(), index

    def push(self, unique, leaf):
        """One optimizer step on the pulled rows; the L2 term is part of the gradient."""
        s = self.settings
        old = leaf.detach()
        grad = leaf.grad + s["row_l2"] * old
        self.steps += 1
        if s["row_optimizer"] == "adagrad":
            second = self.second[unique] + grad.square()
            step = grad / (second.sqrt() + s["epsilon"])
        else:
            first = torch.lerp(grad, self.first[unique], s["beta1"])
            second = torch.lerp(grad.square(), self.second[unique], s["beta2"])
            self.first[unique] = first
            unbias = (1 - s["beta2"] ** self.steps) ** 0.5 / (1 - s["beta1"] ** self.steps)
            step = first * unbias / (second.sqrt() + s["epsilon"])
        self.second[unique] = second
        self.values[unique] = old - s["row_learning_rate"] * step
        self.values[0] = 0


class Run:
    """A model, its table and its optimizers."""

    def __init__(self, model, examples, rows, settings):
        self.has_linear = model in zoo_torch.HAS_LINEAR
        dim = 0 if model == "lr" else settings["embedding_dim"]
        self.table = Table(rows, dim + self.has_linear, settings)
        self.net = zoo_torch.MODELS[model](len(examples.fields), examples.dense.shape[1], settings)
        self.optimizer = torch.optim.Adam(
            self.net.parameters(),
            lr=settings["dense_learning_rate"],
            betas=(settings["beta1"], settings["beta2"]),
            eps=settings["epsilon"],
        )

    def logits(self, ids, widths, dense, leaf, index):
        """ids is (B, S) over all fields' slots; a field's bag is summed up."""
        slots = functional.embedding(index, leaf)  # (B, S, row width)
        if len(widths) < ids.shape[1]:
            slots = torch.stack([bag.sum(1) for bag in slots.split(widths, 1)], 1)
        if not self.has_linear:
            return self.net(None, slots, dense)
        return self.net(slots[:, :, 0], slots[:, :, 1:], dense)

    def epoch(self, ids, widths, dense, labels, batch_size):
        for batch in torch.randperm(len(labels)).split(batch_size):
            unique, leaf, index = self.table.pull(ids[batch])
            logits = self.logits(ids[batch], widths, dense[batch], leaf, index)
            loss = functional.binary_cross_entropy_with_logits(logits, labels[batch])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.table.push(unique, leaf)

    @torch.no_grad()
    def predict(self, ids, widths, dense):
        parts = [
            self.logits(i, widths, d, self.table.values, i)
            for i, d in zip(ids.split(4096), dense.split(4096))
        ]
        return torch.sigmoid(torch.cat(parts).double()).numpy()


def auc(labels, scores):
    """Exact area under the ROC curve; ties count half."""
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    positives = labels.sum()
    negatives = len(labels) - positives
    return (ranks[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives)


def log_loss(labels, scores):
    p = np.clip(scores, 1e-15, 1 - 1e-15)
    return -np.mean(np.where(labels == 1, np.log(p), np.log1p(-p)))


def tensors(examples):
    widths = [bag.shape[1] for bag in examples.fields]
    ids = torch.from_numpy(np.concatenate(examples.fields, 1))
    return ids, widths, torch.from_numpy(examples.dense)


def train(model, train_set, test_set, rows, settings, seed):
    """Trains for settings["epochs"] epochs; (AUC, log loss) on test_set after each."""
    torch.manual_seed(seed)
    run = Run(model, train_set, rows, settings)
    inputs, labels = tensors(train_set), torch.from_numpy(train_set.labels)
    test_inputs = tensors(test_set)
    scores = []
    for _ in range(settings["epochs"]):
        run.epoch(*inputs, labels, settings["batch_size"])
        p = run.predict(*test_inputs)
        scores.append((auc(test_set.labels, p), log_loss(test_set.labels, p)))
    return scores


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="directory that prepare.py wrote")
    parser.add_argument("--settings", default="settings.yaml")
    parser.add_argument("--sets", nargs="+", required=True, choices=sets.COMPARED)
    parser.add_argument(
        "--models", nargs="+", default=list(zoo_torch.MODELS), choices=zoo_torch.MODELS
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    settings = sets.load_settings(args.settings)
    for name in args.sets:
        train_set, test_set, rows = sets.load_pair(args.data, name, "train", "test")
        for model in args.models:
            for seed in args.seeds:
                own = sets.settings_of(settings, name, model)
                area, loss = train(model, train_set, test_set, rows, own, seed)[-1]
                result = {"set": name, "model": model, "seed": seed, "auc": area, "log_loss": loss}
                print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
