#!/usr/bin/env python3
"""Measures the cost of snapshots during training, and the time to continue after a crash.

A first job makes a table of --rows rows on SSD. A second one starts from its model and trains
on examples whose rows are drawn with a skew, alternately without snapshots and with one every
--every. For each run it prints the speed, the median and the 99th percentile of the time of a
pass, and the cost of its snapshots. Then a run is killed by SIGKILL and restarted.
"""

import argparse
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import sparselog  # noqa: E402
from sparselog import COLUMNS  # noqa: E402

BATCHES = 16  # mini-batches in a pass

JOB = """\
name: snapshots
output: {{model_dir: {dir}/first, log_every: {batches}}}
""" + sparselog.DATA + """\
model: {{kind: deepfm, embedding_dim: 16, hidden_layers: [64, 32]}}
training: {{batch_size: 1024}}
pipeline: {{batches_per_pass: {batches}}}
sparse_table: {{kind: ssd, memory_bytes: {memory}}}
"""


def log(path, rows):
    """Writes examples; rows yields for each example the numbers of its rows in all columns."""
    sparselog.write(path, (sparselog.line(i, numbers) for i, numbers in enumerate(rows)))


def skewed(examples, values, seed):
    """Draws rows: half of the draws are among the first eighth of the values."""
    rng = random.Random(seed)
    for _ in range(examples):
        yield [int(values * rng.random() ** 3) for _ in range(COLUMNS)]


def command(binary, args, data, model, **keys):
    """The command that trains."""
    keys = {"data.train": f"[{data}]", "output.model_dir": model, **keys}
    return [binary, "train", args.dir / "job.yaml", "--log-format", "json", *(word for key, value in keys.items() for word in ("--set", f"{key}={value}"))]


def train(words):
    """Trains and returns the summary."""
    subprocess.run(["sync"], check=True)
    process = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if process.returncode:
        sys.exit(process.stderr[-2000:])
    model = next(w.removeprefix("output.model_dir=") for w in words if isinstance(w, str) and w.startswith("output.model_dir="))
    return json.loads((pathlib.Path(model) / "summary.json").read_text())


def passes(model):
    """The seconds of each pass, from the times of the TensorBoard events."""
    data = next(pathlib.Path(model, "tensorboard").glob("events*")).read_bytes()
    times, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        (when,) = struct.unpack_from("<d", data, at + 13)  # after length, checksum and the field's tag
        if not times or when > times[-1] + 1e-4:  # the scalars of one line are written at once
            times.append(when)
        at += 12 + length + 4
    return sorted(b - a for a, b in zip(times[1:], times[2:]))


def report(name, summary, model):
    took = passes(model)
    s = summary["snapshots"]
    speed = summary["training_examples_per_second"]
    print(f"{name:>10}  {speed:9.0f} examples/s  pass p50 {took[len(took) // 2] * 1e3:6.0f} ms  p99 {took[len(took) * 99 // 100] * 1e3:6.0f} ms"
          f"  {s['taken']} snapshots: waited {s['stall_seconds']:.2f} s, wrote {s['bytes'] / 1e6:.0f} MB in {s['write_seconds']:.1f} s", flush=True)
    return speed


def crash(binary, args, first, share):
    """Kills a run after share seconds, and restarts it."""
    model = args.dir / "crashed"
    shutil.rmtree(model, ignore_errors=True)
    words = command(binary, args, args.dir / "night.tsv", model, **{"training.warm_start": first, "snapshots.every": args.every})
    with open(args.dir / "crashed.log", "w") as out:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=out)
        time.sleep(share)
        process.kill()
        process.wait()
    start = time.time()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if "training resumes" in line:
            entry = json.loads(line)
            print(f"after a crash: training resumes after {time.time() - start:.2f} s, with {entry['trained_examples']} examples trained", flush=True)
            break
    process.stderr.read()
    if process.wait():
        sys.exit("the run that went on has failed")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--aibox", default="bin/aibox", help="the binary (default: bin/aibox)")
    p.add_argument("--rows", type=int, default=20_000_000)
    p.add_argument("--examples", type=int, default=3_000_000, help="examples of a measured run")
    p.add_argument("--memory", default="1GiB", help="sparse_table.memory_bytes")
    p.add_argument("--every", default="1m", help="snapshots.every")
    p.add_argument("--pairs", type=int, default=3)
    p.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("bench-snapshots"), help="for data and models; on an SSD, with 1 KiB a row free")
    p.add_argument("--prepare", action="store_true", help="only write the data and train the first model, unless they exist")
    args = p.parse_args()
    args.dir = args.dir.absolute()
    args.dir.mkdir(parents=True, exist_ok=True)
    first = args.dir / "first"
    if not (first / "MODEL.json").exists():
        (args.dir / "job.yaml").write_text(JOB.format(dir=args.dir, memory=args.memory, batches=BATCHES))
        values = args.rows // COLUMNS
        log(args.dir / "first.tsv", ([i] * COLUMNS for i in range(values)))
        log(args.dir / "night.tsv", skewed(args.examples, values, 1))
        train(command(args.aibox, args, args.dir / "first.tsv", f"{first}", **{"snapshots.every": "none"}))
    if args.prepare:
        return
    speeds = {"none": [], args.every: []}
    for _ in range(args.pairs):
        for every, list_ in speeds.items():
            model = args.dir / "night"
            shutil.rmtree(model, ignore_errors=True)
            start = time.time()
            summary = train(command(args.aibox, args, args.dir / "night.tsv", f"{model}", **{"training.warm_start": first, "snapshots.every": every}))
            took = time.time() - start
            list_.append(report(every, summary, model))
    costs = sorted(1 - b / a for a, b in zip(*speeds.values()))
    print(f"snapshots cost {costs[len(costs) // 2]:.2%} of the speed (median of {len(costs)} pairs: {', '.join(f'{c:.2%}' for c in costs)})", flush=True)
    crash(args.aibox, args, first, 0.7 * took)


if __name__ == "__main__":
    main()
