"""Compares the speed of training with PyTorch.

    python compare.py                        everything
    python compare.py --quick                DLRM with mini-batches of 2,048, in about two minutes
    python compare.py --levels step --models dlrm --json dlrm.json
    python compare.py --report *.json        tables of earlier runs

The first run makes a virtual environment with the packages of requirements.txt, builds
aibox and the Go program beside this file, and makes the log. The sides take turns. A figure
is the median over the turns, with the lowest and the highest in brackets; a ratio is the
median of the ratios of the turns.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import levels
import models
import report
import sides

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import environment  # noqa: E402

CACHE = pathlib.Path.home() / ".cache/aibox/bench-speed"


def machine():
    """Describes the machine and the versions that were measured."""
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    entries = dict(line.split(":", 1) for line in lines if ":" in line)
    entries = {key.strip(): value.strip() for key, value in entries.items()}
    instructions = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if name in entries["flags"].split()]
    revision = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=HERE, capture_output=True, text=True)
    return {"processor": entries["model name"], "instructions": instructions, "cores": len(os.sched_getaffinity(0)),
            "aibox": revision.stdout.strip(), "packages": (HERE / "requirements.txt").read_text().split()}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true", help="one model, one size of mini-batches, three turns")
    add("--json", type=pathlib.Path, metavar="FILE", help="write all samples to FILE")
    add("--report", nargs="+", type=pathlib.Path, metavar="FILE", help="measure nothing, and print the samples of FILEs")
    add("--levels", nargs="+", choices=levels.LEVELS, default=list(levels.LEVELS))
    add("--models", nargs="+", choices=models.SECTIONS, default=list(models.SECTIONS), help="models for steps; jobs are of dlrm")
    add("--batches", nargs="+", type=int, default=[512, 2048, 16384], help="sizes of mini-batches for steps")
    add("--job-batches", nargs="+", type=int, default=[2048], help="sizes of mini-batches for jobs")
    add("--precisions", nargs="+", choices=["float32", "bf16"], help="default: bf16 only with AVX-512 BF16 or --quick")
    add("--inputs", nargs="+", choices=["parquet", "text"], default=["parquet", "text"], help="input formats of aibox jobs")
    add("--turns", type=int, help="turns of each side (default: 5, or 3 with --quick)")
    add("--seconds", type=float, default=1.5, help="duration of a turn of steps (default: %(default)s)")
    add("--profile", type=pathlib.Path, metavar="DIR", help="leave profiles of our steps in DIR")
    add("--examples", type=int, default=327680, help="examples of a job, at most those of the log (default: %(default)s)")
    add("--step-examples", type=int, default=131072, help="examples that steps are repeated on (default: %(default)s)")
    add("--table-examples", type=int, default=1310720, help="examples of a job with the table on SSD (default: %(default)s)")
    add("--fill-examples", type=int, default=5242880, help="examples that its table was trained on before (default: %(default)s)")
    add("--log-examples", type=int, default=655360, help="examples of the generated log (default: %(default)s)")
    add("--dir", type=pathlib.Path, default=CACHE / "log", help="directory for the log and models (default: %(default)s)")
    add("--venv", type=pathlib.Path, default=CACHE / "venv", help="where PyTorch is installed (default: %(default)s)")
    options = parser.parse_args()
    if options.profile:
        options.profile = options.profile.resolve()
        options.profile.mkdir(parents=True, exist_ok=True)
    options.turns = options.turns or (3 if options.quick else 5)
    if options.quick:
        options.levels, options.models, options.batches = ["step", "job"], ["dlrm"], [2048]
        options.inputs, options.seconds, options.examples = ["parquet"], 0.7, 49152
    return options


def measure(options, has_bf16):
    """Yields the samples of all requested measurements."""
    python = environment.prepare(options.venv, HERE / "requirements.txt")
    directory = options.dir.resolve()
    place = sides.Place(directory, python, sides.build(directory), options.log_examples)
    for level in options.levels:
        chosen = argparse.Namespace(**vars(options))
        if not chosen.precisions:
            chosen.precisions = ["float32", "bf16"] if has_bf16 or options.quick and level == "step" else ["float32"]
        yield from levels.LEVELS[level](place, chosen)


def main():
    options = parse()
    described, samples = machine(), []
    if options.report:
        files = [json.loads(path.read_text()) for path in options.report]
        described, samples = files[0]["machine"], [sample for file in files for sample in file["samples"]]
    else:
        for sample in measure(options, "avx512_bf16" in described["instructions"]):
            samples.append(sample)
            print(json.dumps({key: value for key, value in sample.items() if key not in ("stages", "table")}), file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps({"machine": described, "samples": samples}, indent=1))
    print(report.heading(described, options.quick))
    print(report.write(samples))


if __name__ == "__main__":
    main()
