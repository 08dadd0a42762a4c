"""aibox's model zoo as PyTorch modules.

Every model maps a mini-batch to logits (B):

    forward(linear, emb, dense)
        linear  (B, F)     pooled linear weights of the fields; unused without a linear part
        emb     (B, F, D)  pooled embeddings of the fields; D is 0 for lr
        dense   (B, C)     dense features

A row of the table is [linear weight, D values] for the models in HAS_LINEAR and
[D values] for the others.
"""

import torch
from torch import nn

HAS_LINEAR = {"lr", "fm", "wide_deep", "deepfm"}


def mlp(sizes):
    """Linear layers with a ReLU behind each: sizes[0] inputs, sizes[-1] outputs."""
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers)


def flat(emb, dense):
    """The input of a deep network: (B, F*D + C)."""
    return torch.cat([emb.flatten(1), dense], 1)


def second_order(emb):
    """Sum over pairs of fields of the dot products of their embeddings: (B)."""
    return 0.5 * (emb.sum(1).square() - emb.square().sum(1)).sum(1)


class LR(nn.Module):
    """Linear weights of the sparse values plus a linear function of the dense ones."""

    def __init__(self, fields, dense, settings):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dense))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, linear, emb, dense):
        return linear.sum(1) + dense @ self.weight + self.bias


class FM(LR):
    def forward(self, linear, emb, dense):
        return super().forward(linear, emb, dense) + second_order(emb)


class WideDeep(nn.Module):
    """The linear part of lr beside a deep network, whose output layer has the bias."""

    def __init__(self, fields, dense, settings):
        super().__init__()
        inputs = fields * settings["embedding_dim"] + dense
        hidden = settings["hidden_layers"]
        self.weight = nn.Parameter(torch.zeros(dense))
        self.deep = nn.Sequential(mlp([inputs, *hidden]), nn.Linear(hidden[-1], 1))

    def forward(self, linear, emb, dense):
        return linear.sum(1) + dense @ self.weight + self.deep(flat(emb, dense)).squeeze(1)


class DeepFM(WideDeep):
    def forward(self, linear, emb, dense):
        return super().forward(linear, emb, dense) + second_order(emb)


class DCN(nn.Module):
    """Cross layers beside the deep network, joined before the output.

    x is (B, n), x0 its value at the input. dcn:    x <- x0 * (w.x) + b + x;
    dcn_v2: x <- x0 * (W x + b) + x, with * per element. Biases start from 0.
    """

    def __init__(self, fields, dense, settings, matrix):
        super().__init__()
        n = fields * settings["embedding_dim"] + dense
        hidden = settings["hidden_layers"]
        depth = range(settings["cross_layers"])
        self.matrix = matrix
        self.cross = nn.ModuleList(nn.Linear(n, n if matrix else 1, bias=False) for _ in depth)
        self.bias = nn.ParameterList(torch.zeros(n) for _ in depth)
        self.deep = mlp([n, *hidden])
        self.out = nn.Linear(n + hidden[-1], 1)

    def forward(self, linear, emb, dense):
        x0 = x = flat(emb, dense)
        for layer, bias in zip(self.cross, self.bias):
            if self.matrix:
                x = x0 * (layer(x) + bias) + x
            else:
                x = x0 * layer(x) + bias + x
        return self.out(torch.cat([x, self.deep(x0)], 1)).squeeze(1)


class DLRM(nn.Module):
    """Dot products between all pairs of embeddings and the bottom network's output.

    Without dense features there is no bottom network: the top one sees the dot
    products of the embeddings alone.
    """

    def __init__(self, fields, dense, settings):
        super().__init__()
        width = settings["embedding_dim"]
        vectors = fields + 1 if dense else fields
        self.bottom = mlp([dense, *settings["bottom_layers"]]) if dense else None
        self.pairs = torch.tril_indices(vectors, vectors, -1)
        inputs = self.pairs.shape[1] + (width if dense else 0)
        hidden = settings["hidden_layers"]
        self.top = nn.Sequential(mlp([inputs, *hidden]), nn.Linear(hidden[-1], 1))

    def forward(self, linear, emb, dense):
        parts = []
        if self.bottom:
            x = self.bottom(dense)  # (B, D)
            emb = torch.cat([x.unsqueeze(1), emb], 1)  # (B, F+1, D)
            parts.append(x)
        dots = torch.bmm(emb, emb.transpose(1, 2))
        parts.append(dots[:, self.pairs[0], self.pairs[1]])
        return self.top(torch.cat(parts, 1)).squeeze(1)


class AIBox(nn.Module):
    """The joint network of the AIBox paper (§2.2, Figure 1).

    Each tower sees the embeddings behind a ReLU (§2.1), its own slice of the dense
    features and, from the second on, the first and last hidden layer of the tower
    before it. The last hidden layers of all towers are joined before the output.
    """

    def __init__(self, fields, dense, settings):
        super().__init__()
        self.widths = settings["tower_dense"]
        hidden = settings["hidden_layers"]
        handed_on = 0
        self.first, self.rest = nn.ModuleList(), nn.ModuleList()
        for width in self.widths:
            inputs = fields * settings["embedding_dim"] + width + handed_on
            self.first.append(mlp([inputs, hidden[0]]))
            self.rest.append(mlp(hidden))
            handed_on = hidden[0] + hidden[-1]
        self.out = nn.Linear(hidden[-1] * len(self.widths), 1)

    def forward(self, linear, emb, dense):
        emb = torch.relu(emb.flatten(1))
        handed_on, lasts = [], []
        for first, rest, own in zip(self.first, self.rest, dense.split(self.widths, 1)):
            low = first(torch.cat([emb, own, *handed_on], 1))
            high = rest(low)
            handed_on = [low, high]
            lasts.append(high)
        return self.out(torch.cat(lasts, 1)).squeeze(1)


MODELS = {
    "lr": LR,
    "fm": FM,
    "wide_deep": WideDeep,
    "deepfm": DeepFM,
    "dcn": lambda *args: DCN(*args, matrix=False),
    "dcn_v2": lambda *args: DCN(*args, matrix=True),
    "dlrm": DLRM,
    "aibox": AIBox,
}
