#!/usr/bin/env python3
"""Measures what a remote snapshot uploads, compared with what has changed since the previous one.

A first job makes a table of --rows rows on SSD. Further jobs start from its model and train rows
that are drawn uniformly, so that they lie in as many buckets as possible. Between two snapshots,
a job trains a tenth, a hundredth or a thousandth of the table; there is one job for each share
and each --memory. Every snapshot is uploaded. The change is the bytes of each of these rows once,
with its key, as in a bucket, and of the dense state. The uploaded bytes are read from the
manifests, and include these. A snapshot that overtakes another one has the changes of both. The
growth is the bytes of the snapshot's files that the files of the previous one did not have.
"""

import argparse
import base64
import collections
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import sparselog  # noqa: E402
from sparselog import COLUMNS  # noqa: E402

SHARES = {0.1: (8, 20), 0.01: (24, 150), 0.001: (24, 1500)}  # snapshots of a job, and how often each example is repeated between two of them, so that uploads keep up
KINDS = ("buckets", "row deltas", "index", "dense", "reports", "manifest")

JOB = """\
name: uploads
output: {{model_dir: {dir}/first}}
""" + sparselog.DATA + """\
model: {{kind: fm, embedding_dim: 16}}
training: {{batch_size: 2000, accept_diverged: true}}
sparse_table: {{kind: ssd}}
snapshots: {{every: none, remote_every: 1 snapshot}}
"""


def night_log(path, values, share, snapshots, repeats):
    """Writes the examples of a job; returns the numbers of distinct and of all examples between two snapshots."""
    rng, n = random.Random(1), int(values * share)
    with open(path, "w") as f:
        for _ in range(snapshots):
            draws = [rng.sample(range(values), n) for _ in range(COLUMNS)]
            lines = [sparselog.line(i, [d[i] for d in draws]) for i in range(n)]
            for _ in range(repeats):
                f.writelines(lines)
    return n, n * repeats


def train(args, data, model, watch=None, **keys):
    """Trains, and calls watch with each manifest of a snapshot in the meantime."""
    keys = {"data.train": f"[{data}]", "output.model_dir": model, **keys}
    words = [args.aibox, "train", args.dir / "job.yaml", "--log-format", "json", *(w for k, v in keys.items() for w in ("--set", f"{k}={v}"))]
    with open(args.dir / "log", "w") as log:
        process, seen = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log), set()
        while process.poll() is None:
            for path in sorted((args.dir / "remote/snapshots").glob("*.json")) if watch else ():
                if path.name not in seen:
                    seen.add(path.name)
                    watch(path.read_bytes())
            time.sleep(0.002)
    if process.returncode:
        sys.exit((args.dir / "log").read_text()[-2000:])
    return json.loads((model / "summary.json").read_text())


def kind(name):
    if not name.startswith("table/"):
        return "reports" if name.startswith(("reports/", "outside/")) else "dense"
    return "buckets" if name.endswith(".bucket") else "row deltas" if name.endswith(".delta") else "index"


def uploaded(data):
    """The number and step of a snapshot, the bytes that it uploaded by kind, the bytes of its dense state, and the length of each file."""
    m, dense = json.loads(data)["manifest"], 0
    if "deflated" in m:
        m = json.loads(zlib.decompress(base64.b64decode(m["deflated"]), wbits=-15))
    by_kind, counted = collections.Counter(manifest=len(data)), set()
    for f in m["files"]:
        if kind(f["name"]) == "dense":
            dense += f["bytes"]
        for part in f["parts"] or ():
            if part["object"].startswith(m["id"]) and part["object"] not in counted:
                counted.add(part["object"])
                by_kind[kind(f["name"])] += part["bytes"]
    return m["number"], m["step"], by_kind, dense, {f["name"]: f["bytes"] for f in m["files"]}


def row_bytes(args):
    """The bytes of a row with its key."""
    stats = subprocess.run([args.aibox, "table", "stats", "--json", args.dir / "first"], stdout=subprocess.PIPE, check=True).stdout
    layout = json.loads(stats)["row_layout"]
    return 8 + 4 * (layout["value_dim"] + layout["state_dim"] + 4)  # values, state and counters of float32


def measure(args, memory, share):
    values, (snapshots, repeats) = args.rows // COLUMNS, SHARES[share]
    distinct, examples = night_log(args.dir / "night.tsv", values, share, snapshots, repeats)
    batch = min(distinct, 1000)
    for name in "remote", "night":
        shutil.rmtree(args.dir / name, ignore_errors=True)
    (args.dir / "remote").mkdir()
    manifests = []
    train(args, args.dir / "night.tsv", args.dir / "night", manifests.append, **{
        "training.warm_start": args.dir / "first", "training.batch_size": batch, "pipeline.batches_per_pass": examples // batch,
        "snapshots.every": "1 pass", "snapshots.remote": f"file://{args.dir}/remote", "sparse_table.memory_bytes": memory})
    print(f"\n{memory}, {share:.1%} of the rows between two snapshots; KB")
    print("| snapshot | rows changed | changed | files grew | uploaded | of changed | of growth | " + " | ".join(KINDS) + " |")
    print("| --- " * (7 + len(KINDS)) + "|")
    before, total, row = None, collections.Counter(), args.row_bytes
    for number, step, by_kind, dense, files in map(uploaded, manifests):
        if before:
            if number != before[0] + 1:
                sys.exit(f"the manifest of snapshot {before[0] + 1} was removed before it was read")
            rows = (step - before[1]) * batch // examples * distinct * COLUMNS
            grew = sum(max(0, size - before[2].get(name, 0)) for name, size in files.items())
            line(number, rows, rows * row + dense, grew, by_kind)
            total += by_kind + collections.Counter(rows=rows, changed=rows * row + dense, grew=grew)
        before = number, step, files
    if not total:
        sys.exit("the job ended before two snapshots were uploaded: take more --rows, or a faster disk")
    line("all", total.pop("rows"), total.pop("changed"), total.pop("grew"), total)


def line(name, rows, changed, grew, by_kind):
    up = by_kind.total()
    print(f"| {name} | {rows} | {changed / 1e3:.0f} | {grew / 1e3:.0f} | {up / 1e3:.0f} | {up / changed:.2f} | {up / grew:.2f} | " + " | ".join(f"{by_kind[k] / 1e3:.0f}" for k in KINDS) + " |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--aibox", default="bin/aibox", help="the binary (default: bin/aibox)")
    p.add_argument("--rows", type=int, default=2_000_000)
    p.add_argument("--memory", nargs="+", default=["1GiB", "128MiB"], help="sparse_table.memory_bytes: for a cache of all rows that change, and for one of some of them")
    p.add_argument("--shares", nargs="+", type=float, default=list(SHARES), help=f"shares of the rows that change between two snapshots, of {list(SHARES)}")
    p.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("bench-uploads"), help="for data and models; with 1.5 KiB a row free")
    args = p.parse_args()
    args.dir = args.dir.absolute()
    args.dir.mkdir(parents=True, exist_ok=True)
    if not (args.dir / "first/MODEL.json").exists():
        (args.dir / "job.yaml").write_text(JOB.format(dir=args.dir))
        sparselog.write_each(args.dir / "first.tsv", range(args.rows // COLUMNS))
        train(args, args.dir / "first.tsv", args.dir / "new")
        night_log(args.dir / "night.tsv", args.rows // COLUMNS, 0.1, 8, 20)
        train(args, args.dir / "night.tsv", args.dir / "first", **{"training.warm_start": args.dir / "new", "sparse_table.memory_bytes": args.memory[0]})  # a new table still splits its slots
        shutil.rmtree(args.dir / "new")
    args.row_bytes = row_bytes(args)
    for memory in args.memory:
        for share in args.shares:
            measure(args, memory, share)


if __name__ == "__main__":
    main()
