"""The data sets of the comparison: one schema for both sides.

SCHEMAS holds, per set, the `data` section of an aibox job file without its URIs;
those of generated sets are derived from their `generate` section. compare.py writes
it into the job files, and load() below reads the same files by the same schema for
PyTorch, so the two sides cannot drift apart.

prepare.py writes each set as four files into DIR/<set>/:

    train.tsv   what a final model is trained on
    test.tsv    held out; looked at only by the final comparison
    fit.tsv     train.tsv without its end
    valid.tsv   the end of train.tsv, 10 or 25 %; settings are chosen on it

settings_of reads settings.yaml.
"""

import csv
import json
import operator
import pathlib
from dataclasses import dataclass

import numpy as np
import yaml

HERE = pathlib.Path(__file__).resolve().parent
DENSE = [{"clip": {"min": 0}}, "log1p"]

SCHEMAS = {
    "criteo": {
        "format": "tsv",
        "header": False,
        "columns": [{"name": "label", "role": "label"}]
        + [{"name": f"I{i}", "role": "dense", "transform": DENSE, "missing": 0} for i in range(1, 14)]
        + [{"name": f"C{i}", "role": "sparse"} for i in range(1, 27)],
    },
    "movielens": {
        "format": "tsv",
        "header": True,
        "label": "rating >= 4",
        "columns": [
            {"name": "userId", "role": "sparse"},
            {"name": "movieId", "role": "sparse"},
            {"name": "genres", "role": "sparse", "separator": "|"},
            {"name": "rating", "role": "label"},
            {"name": "timestamp", "role": "ignore"},
        ],
    },
    "insteval": {
        "format": "tsv",
        "header": True,
        "label": "y >= 4",
        "columns": [
            {"name": name, "role": "sparse"}
            for name in ("s", "d", "studage", "lectage", "service", "dept")
        ]
        + [{"name": "y", "role": "label"}],
    },
}


def drawn(generate):
    """The schema of what `aibox generate` writes for a section `generate`."""
    columns = [{"name": "label", "role": "label"}]
    columns += [
        {"name": f"D{i}", "role": "dense", "transform": DENSE, "missing": 0}
        for i in range(1, generate.get("dense_columns", 0) + 1)
    ]
    for field in generate["fields"]:
        repeat = field.get("repeat", 1)
        for i in range(1, repeat + 1):
            column = {"name": f"{field['name']}{i if repeat > 1 else ''}", "role": "sparse"}
            columns.append({**column, **({"separator": "|"} if field.get("max_values", 1) > 1 else {})})
    return {"format": "tsv", "header": True, "columns": columns}


def generators():
    """The sections `generate` of the sets that aibox draws, by the name of the set."""
    known = json.loads((HERE.parent / "defaults/sets.json").read_text(encoding="utf-8"))
    own = yaml.safe_load((HERE / "generated.yaml").read_text(encoding="utf-8"))
    return {
        **{name: spec["generate"] for name, spec in known.items() if "generate" in spec},
        "generated": own["generate"],
    }


SCHEMAS.update({name: drawn(generate) for name, generate in generators().items()})
COMPARED = ["criteo", "movielens", "insteval", "generated"]  # by compare.py, with the settings of settings.yaml


@dataclass
class Examples:
    """The examples of one file in columns; N of them, F fields, C dense columns."""

    labels: np.ndarray  # (N) float32, 0 or 1
    dense: np.ndarray  # (N, C) float32, transformed
    fields: list[np.ndarray]  # F arrays (N, widest bag) int64: row numbers, 0 is "no value"
    raw: np.ndarray  # (N, C) float32, as in the file; NaN: the cell is empty
    sources: np.ndarray  # (C) of each dense feature, the number of its column among the dense ones

    def __len__(self):
        return len(self.labels)


class Vocabulary:
    """Numbers the (field, value) pairs seen in training from 1 on; 0 means unseen."""

    def __init__(self):
        self.rows = {}
        self.growing = True

    def row(self, field, value):
        if value == "":
            return 0
        if self.growing:
            return self.rows.setdefault((field, value), len(self.rows) + 1)
        return self.rows.get((field, value), 0)

    def __len__(self):
        return len(self.rows) + 1


def load_pair(directory, name, first, second, indicators=False):
    """Loads two files of a set, numbering values by the first alone.

    With indicators, every dense column with an empty cell in the first file is followed by a
    further one that is 1 where the cell is empty.
    """
    vocabulary = Vocabulary()
    path = pathlib.Path(directory) / name
    a = load(path / f"{first}.tsv", SCHEMAS[name], vocabulary)
    vocabulary.growing = False
    b = load(path / f"{second}.tsv", SCHEMAS[name], vocabulary)
    if indicators:
        used = np.flatnonzero(np.isnan(a.raw).any(0))
        order = np.argsort(np.concatenate([a.sources, used]), kind="stable")
        for x in (a, b):
            cells = np.isnan(x.raw[:, used]).astype(np.float32)
            x.dense = np.concatenate([x.dense, cells], 1)[:, order]
            x.sources = np.concatenate([x.sources, used])[order]
    return a, b, len(vocabulary)


def load(path, schema, vocabulary):
    """Reads one tab-separated file by its schema."""
    with open(path, newline="", encoding="utf-8") as f:
        rows = csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE)
        if schema["header"]:
            next(rows)
        cells = list(zip(*rows, strict=True))
    columns = {c["name"]: (c, values) for c, values in zip(schema["columns"], cells, strict=True)}
    dense, fields, raw = [], [], []
    for column, values in columns.values():
        if column["role"] == "dense":
            dense.append(_dense(values, column.get("transform", [])))
            raw.append(np.array([float(v) if v else np.nan for v in values], np.float32))
        elif column["role"] == "sparse":
            fields.append(_sparse(values, column, vocabulary))
    labels = _labels(schema, columns)
    no_dense = np.zeros((len(labels), 0), np.float32)
    dense, raw = (np.stack(x, 1) if x else no_dense for x in (dense, raw))
    return Examples(labels, dense, fields, raw, np.arange(dense.shape[1]))


def _labels(schema, columns):
    if "label" not in schema:
        (values,) = (v for c, v in columns.values() if c["role"] == "label")
        return np.array(values, np.float32)
    name, comparison, threshold = schema["label"].split()
    compare = {">=": operator.ge, ">": operator.gt}[comparison]
    return compare(np.array(columns[name][1], float), float(threshold)).astype(np.float32)


def _dense(values, transforms):
    x = np.array([float(v) if v else 0.0 for v in values], np.float32)
    for step in transforms:
        if step == "log1p":
            x = np.log1p(x)
        else:
            x = np.maximum(x, step["clip"]["min"])
    return x


def _sparse(values, column, vocabulary):
    separator = column.get("separator")
    bags = [v.split(separator) if separator else [v] for v in values]
    out = np.zeros((len(bags), max(map(len, bags))), np.int64)
    for i, bag in enumerate(bags):
        for j, value in enumerate(bag):
            out[i, j] = vocabulary.row(column["name"], value)
    return out


def load_settings(path):
    with open(path, encoding="utf-8") as f:
        return yaml.safe_load(f)


def settings_of(settings, name, model):
    """The settings of one model on one set: the common ones, overridden by the set's, then by the model's."""
    return {**base_settings(settings, name), **settings["sets"][name]["models"][model]}


def base_settings(settings, name):
    """The settings of every model on one set."""
    own = {key: value for key, value in settings["sets"][name].items() if key != "models"}
    return {**settings["common"], **own}
