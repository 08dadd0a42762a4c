#!/usr/bin/env python3
"""Measures the cost of losing a disk during training, as tables 1 and 2 of CPR do.

A model is trained from a generated log, with a table on SSD in --dirs directories, first
without failures. Then the same job is killed by SIGKILL at random moments. Each time one of
the directories is deleted and made anew, as if a new disk were mounted there, and the job is
restarted. It compares STRATEGIES: recovery.mode full, and partial without snapshots.priority
and with each of its kinds. For each run it prints its time relative to the undisturbed run,
the examples trained again, the time from a restart until training continued, the bytes
uploaded, the memory for choosing rows, the portion of lost samples, and the AUC on held-out
data.
"""

import argparse
import datetime
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

STRATEGIES = {
    "full": ["recovery.mode=full"],
    "partial": ["recovery.mode=partial", "recovery.max_lost_samples=1"],
}
for kind in "mfu", "ssu", "scar":
    STRATEGIES[kind] = [*STRATEGIES["partial"], f"snapshots.priority={kind}"]

JOB = """\
name: recovery
data: {{train: [{dir}/train.tsv], eval: [{dir}/eval.tsv], format: tsv}}
model: {{kind: deepfm, embedding_dim: 16, hidden_layers: [64, 32]}}
training: {{batch_size: 512, epochs: 1, accept_diverged: true}}
pipeline: {{batches_per_pass: 8}}
sparse_table: {{kind: ssd, memory_bytes: {memory}, dirs: {dirs}}}
snapshots: {{every: {every} examples, remote: {dir}/remote, remote_every: {uploads} snapshots}}
output: {{model_dir: {dir}/model, log_every: 8}}
generate:
  fields:
    - {{name: user, cardinality: 100_000, skew: 1.0}}
    - {{name: ad, cardinality: 20_000, skew: 1.0}}
    - {{name: query, cardinality: 100_000, skew: 1.0}}
    - {{name: site, cardinality: 5_000, skew: 1.0}}
    - {{name: context, cardinality: 100, skew: 0.7, repeat: 6}}
    - {{name: slot, cardinality: 20, skew: 0.5, repeat: 6}}
  dense_columns: 4
  train_examples: {examples}
  eval_examples: 100_000
  base_rate: 0.2
  linear_strength: 1.0
  interaction_strength: 1.0
  latent_dim: 4
"""


def clear(args):
    """Removes the files of an earlier run."""
    for path in [args.dir / "model", args.dir / "remote", *args.disks]:
        shutil.rmtree(path, ignore_errors=True)
    (args.dir / "remote").mkdir(parents=True)


def attempt(args, strategy, until):
    """Starts the job, and kills it when it has trained the given number of examples; None: never.

    Returns the seconds that it took, and whether it finished."""
    words = [args.aibox, "train", args.dir / "job.yaml", "--log-format", "json"]
    for setting in STRATEGIES[strategy]:
        words += ["--set", setting]
    metrics = args.dir / "metrics.jsonl"
    start = time.time()
    with open(args.dir / "log.jsonl", "a") as out:
        process = subprocess.Popen([*words, "--set", f"output.metrics={metrics}"], stdout=subprocess.DEVNULL, stderr=out)
        while process.poll() is None:
            time.sleep(0.02)
            if until is not None and trained(metrics) >= until:
                process.kill()
                process.wait()
                return time.time() - start, False
    if process.returncode:
        sys.exit(f"the job has ended with exit code {process.returncode}; its log is {args.dir}/log.jsonl")
    return time.time() - start, True


def trained(metrics):
    """The number of examples in the last complete line of the metrics."""
    try:
        lines = metrics.read_text().split("\n")[:-1]
    except FileNotFoundError:
        return 0
    return json.loads(lines[-1]).get("trained_examples", 0) if lines else 0


def loading(args):
    """The total seconds from the start of each process after a failure until training continued."""
    seconds, start = 0, None
    for line in (args.dir / "log.jsonl").read_text().splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue  # incomplete: the process was killed while writing it
        at = datetime.datetime.fromisoformat(entry["time"])
        if entry["msg"] == "job":
            start = at
        elif entry["msg"].startswith("training resumes from"):
            seconds += (at - start).total_seconds()
    return seconds


def run(args, mode, moments, disks):
    """Trains with failures at the given moments, each of which loses one of the disks."""
    clear(args)
    for name in "metrics.jsonl", "log.jsonl":
        (args.dir / name).unlink(missing_ok=True)
    seconds = 0
    for moment, disk in zip(moments, disks):
        took, done = attempt(args, mode, moment)
        seconds += took
        if done:
            sys.exit("the job has ended before it could be killed; take more --examples")
        shutil.rmtree(args.disks[disk])
        args.disks[disk].mkdir()
    took, _ = attempt(args, mode, None)
    summary = json.loads((args.dir / "model" / "summary.json").read_text())
    recoveries = summary.get("recoveries") or []
    return {
        "seconds": seconds + took,
        "auc": summary["eval"]["auc"],
        "again": sum(r["examples_trained_again"] for r in recoveries),
        "lost": sum(r.get("lost_samples", 0) for r in recoveries),
        "modes": sorted({r["mode"] for r in recoveries}),
        "loading": loading(args),
        "by_priority": sum(r.get("rows_saved_by_priority", 0) for r in recoveries),
        "restored": sum(r.get("rows_restored", 0) for r in recoveries),
        "uploaded": uploaded(summary, "remote"),
        "saved": uploaded(summary, "priority"),
        "memory": summary["memory"].get("priority_bytes", 0),
    }


def uploaded(summary, what):
    return (summary["snapshots"].get(what) or {}).get("uploaded_bytes", 0)


def mean(values):
    """The mean, and its standard error."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return statistics.fmean(values), error


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--aibox", default="bin/aibox", help="the binary (default: bin/aibox)")
    p.add_argument("--examples", type=int, default=400_000)
    p.add_argument("--dirs", type=int, default=4, help="directories of the table")
    p.add_argument("--failures", type=int, default=2, help="failures in a run")
    p.add_argument("--seeds", type=int, default=3, help="number of runs, each with its own moments and directories")
    p.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES), help="default: all")
    p.add_argument("--memory", default="16MiB", help="sparse_table.memory_bytes")
    p.add_argument("--every", type=int, default=20_000, help="examples between two snapshots")
    p.add_argument("--uploads", type=int, default=4, help="one snapshot in this many is uploaded")
    p.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("bench-recovery"), help="for data and models")
    args = p.parse_args()
    args.dir = args.dir.absolute()
    args.dir.mkdir(parents=True, exist_ok=True)
    args.disks = [args.dir / f"disk{i}" for i in range(args.dirs)]
    (args.dir / "job.yaml").write_text(JOB.format(
        dir=args.dir, memory=args.memory, dirs=json.dumps([str(d) for d in args.disks]), every=args.every, uploads=args.uploads, examples=args.examples))
    subprocess.run([args.aibox, "generate", args.dir / "job.yaml"], check=True, stdout=subprocess.DEVNULL)
    results = {name: [] for name in STRATEGIES if name in args.strategies}
    undisturbed = []
    for seed in range(1, args.seeds + 1):
        rng = random.Random(seed)
        moments = sorted(int(args.examples * rng.uniform(0.2, 0.9)) for _ in range(args.failures))
        disks = [rng.randrange(args.dirs) for _ in range(args.failures)]
        plain = run(args, "full", [], [])
        undisturbed.append(plain)
        print(f"seed {seed}: undisturbed {plain['seconds']:.1f} s, AUC {plain['auc']:.5f}; failures at {moments} of directories {disks}", flush=True)
        for mode, list_ in results.items():
            r = run(args, mode, moments, disks)
            list_.append({**r, "overhead": r["seconds"] / plain["seconds"] - 1, "auc_lost": plain["auc"] - r["auc"]})
            print(f"  {mode:>7}: {r['seconds']:.1f} s, AUC {r['auc']:.5f}, {r['again']} examples trained again, {r['lost']:.4f} of the samples lost, {r['by_priority']} of {r['restored']} rows from priority saves, recovered by {r['modes']}", flush=True)
    print("\n| strategy | overhead | trained again | until it went on | uploaded snapshots | priority saves | memory of these | samples lost (PLS) | AUC lost |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for mode, list_ in results.items():
        overhead, error = mean([r["overhead"] for r in list_])
        auc, auc_error = mean([r["auc_lost"] for r in list_])
        print(f"| {mode} | {overhead:.1%} ± {error:.1%} | {mean([r['again'] / args.examples for r in list_])[0]:.1%} | {mean([r['loading'] for r in list_])[0]:.1f} s | {mean([r['uploaded'] for r in list_])[0] / 1e6:.0f} MB | {mean([r['saved'] for r in list_])[0] / 1e6:.1f} MB | {mean([r['memory'] for r in list_])[0] / 1e6:.2f} MB | {mean([r['lost'] for r in list_])[0]:.4f} | {auc:.5f} ± {auc_error:.5f} |")


if __name__ == "__main__":
    main()
