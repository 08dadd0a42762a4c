"""PyTorch as people use it: dense embedding tables that one Adam trains with all else.

The models are those of zoo_torch.py. What differs from quality_torch.py, which has
aibox's semantics: Adam updates every row in every step, so rows move on after their
last gradient; L2 applies to whole tables in every step; the output bias starts at the
log odds of the training part.
"""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import quality_torch
import zoo_torch


class Usual(nn.Module):
    """A model of the zoo with its table. Row 0 stands for no value and stays zero."""

    def __init__(self, model, examples, rows, settings):
        super().__init__()
        self.has_linear = model in zoo_torch.HAS_LINEAR
        width = self.has_linear + (0 if model == "lr" else settings["embedding_dim"])
        self.table = nn.Parameter(torch.randn(rows, width) * settings["init_stddev"])
        settings = {**settings, "tower_dense": with_indicators(settings["tower_dense"], examples)}
        self.net = zoo_torch.MODELS[model](len(examples.fields), examples.dense.shape[1], settings)
        rate = float(examples.labels.mean())
        with torch.no_grad():
            self.table[0] = 0
            output_bias(self.net).fill_(math.log(rate / (1 - rate)))

    def forward(self, ids, widths, dense):
        slots = functional.embedding(ids, self.table, padding_idx=0)
        if len(widths) < ids.shape[1]:
            slots = torch.stack([bag.sum(1) for bag in slots.split(widths, 1)], 1)
        if not self.has_linear:
            return self.net(None, slots, dense)
        return self.net(slots[:, :, 0], slots[:, :, 1:], dense)


def with_indicators(tower_dense, examples):
    """The number of dense features of each tower: its columns and their indicators."""
    ends = np.cumsum(tower_dense)
    counts = [int((examples.sources < end).sum()) for end in ends]
    return [b - a for a, b in zip([0, *counts], counts)]


def output_bias(net):
    """The bias of the logit."""
    if hasattr(net, "bias") and isinstance(net.bias, nn.Parameter):
        return net.bias
    return [m for m in net.modules() if isinstance(m, nn.Linear) and m.out_features == 1][-1].bias


def train(model, train_set, test_set, rows, settings, seed):
    """Trains for settings["epochs"] epochs; (AUC, log loss) on test_set after each."""
    torch.manual_seed(seed)
    net = Usual(model, train_set, rows, settings)
    parameters = [
        {"params": [net.table], "weight_decay": settings["table_l2"]},
        {"params": list(net.net.parameters())},
    ]
    optimizer = torch.optim.Adam(parameters, lr=settings["learning_rate"], fused=True)
    ids, widths, dense = quality_torch.tensors(train_set)
    labels = torch.from_numpy(train_set.labels)
    test_ids, test_widths, test_dense = quality_torch.tensors(test_set)
    scores = []
    for _ in range(settings["epochs"]):
        for batch in torch.randperm(len(labels)).split(settings["batch_size"]):
            logits = net(ids[batch], widths, dense[batch])
            optimizer.zero_grad()
            functional.binary_cross_entropy_with_logits(logits, labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            parts = [
                net(i, test_widths, d)
                for i, d in zip(test_ids.split(4096), test_dense.split(4096))
            ]
            p = torch.sigmoid(torch.cat(parts).double()).numpy()
        scores.append(
            (quality_torch.auc(test_set.labels, p), quality_torch.log_loss(test_set.labels, p))
        )
    return scores
