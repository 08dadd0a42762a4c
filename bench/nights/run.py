#!/usr/bin/env python3
"""Measures nightly jobs that continue from yesterday's model, with the table on SSD.

The first night makes a table of --rows rows. Further nights start from it, one after the
other, and touch a tenth, a hundredth and a thousandth of the rows, drawn uniformly. Several
binaries take turns. For each night it prints its time, the time until its table was open,
and the bytes written to the table's directory.
"""

import argparse
import datetime
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import sparselog  # noqa: E402
from sparselog import COLUMNS  # noqa: E402

SHARES = (0.1, 0.01, 0.001)

JOB = """\
name: nights
output: {{model_dir: {dir}/first}}
""" + sparselog.DATA + """\
model: {{kind: fm, embedding_dim: 16}}
training: {{batch_size: 2048, accept_diverged: true}}
sparse_table: {{kind: ssd, memory_bytes: {memory}}}
"""


def train(binary, args, data, model, warm_start=""):
    """Trains and returns the seconds of the job, the seconds until its table was open, and the summary."""
    shutil.rmtree(model, ignore_errors=True)
    subprocess.run(["sync"], check=True)
    start = time.time()
    process = subprocess.run(
        [binary, "train", args.dir / "job.yaml", "--log-format", "json",
         "--set", f"data.train=[{data}]", "--set", f"output.model_dir={model}", *(["--set", f"training.warm_start={warm_start}"] if warm_start else [])],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seconds = time.time() - start
    if process.returncode:
        sys.exit(process.stderr[-2000:])
    summary = json.loads((model / "summary.json").read_text())
    began = seconds
    for line in process.stderr.splitlines():
        if '"msg":"warm start"' in line:
            began = datetime.datetime.fromisoformat(json.loads(line)["time"]).timestamp() - start
    return seconds, began, summary


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--aibox", nargs="+", default=["bin/aibox"], help="binaries to compare (default: bin/aibox)")
    p.add_argument("--rows", type=int, default=20_000_000)
    p.add_argument("--memory", default="512MiB", help="sparse_table.memory_bytes")
    p.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("bench-nights"), help="for data and models; on an SSD, with 1 KiB a row free")
    args = p.parse_args()
    args.dir = args.dir.absolute()
    args.dir.mkdir(parents=True, exist_ok=True)
    (args.dir / "job.yaml").write_text(JOB.format(dir=args.dir, memory=args.memory))
    examples = args.rows // COLUMNS
    sparselog.write_each(args.dir / "first.tsv", range(examples))
    for share in SHARES:
        draw = random.Random(1)
        sparselog.write_each(args.dir / f"{share}.tsv", (draw.randrange(examples) for _ in range(int(examples * share))))
    for binary in args.aibox:
        first = args.dir / "first"
        seconds, _, summary = train(binary, args, args.dir / "first.tsv", first)
        print(f"{binary}\nfirst night: {summary['table']['rows']} rows, {seconds:.1f} s, {summary['table']['disk_bytes'] / 2**20:.0f} MiB on disk", flush=True)
        print(f"{'touched':>8} {'seconds':>8} {'to table':>8} {'MiB written':>11}")
        for share in SHARES:
            seconds, start, summary = train(binary, args, args.dir / f"{share}.tsv", args.dir / "night", first)
            print(f"{share:>8} {seconds:>8.1f} {start:>8.1f} {summary['table']['written_bytes'] / 2**20:>11.0f}", flush=True)
    shutil.rmtree(args.dir)


if __name__ == "__main__":
    main()
