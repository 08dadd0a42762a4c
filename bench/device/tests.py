"""The tests that need a device, and compute-sanitizer."""

import collections
import os
import re
import shutil
import subprocess

import jobs
from part import Engine, Table

# Tests of each program that say something here. The others need the sources, or are for machines without a device.
CHOSEN = {"cuda.test": "-test.skip=^TestFake$", "kernels.test": "-test.run=^TestDevice$"}
LINES = re.compile(r"^ *--- (PASS|FAIL|SKIP): ", re.MULTILINE)
TOOL = "compute-sanitizer"
MOST = 45  # seconds for one program under one tool
UNFIT = ["Device not supported", "Unable to find injection library"]  # what the tool says where it cannot work


def run(command, **options):
    """Runs a program and returns its exit status, and what it printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    return done.returncode, done.stdout


def tests(options, part):
    """Each test program, twice: errors of order do not show every time."""
    table = Table("program", "passed", "failed", "skipped")
    for name, chosen in CHOSEN.items():
        code, printed = run([options.programs / name, "-test.v", chosen, "-test.count=2", "-test.timeout=95s"])
        counts = collections.Counter(LINES.findall(printed))
        table.row(name, counts["PASS"], counts["FAIL"], counts["SKIP"])
        wrong = "\n".join(line for line in printed.splitlines() if not line.startswith("=== ") and "--- PASS" not in line)
        if code or not counts["PASS"] + counts["SKIP"]:
            part.fail(f"{name}: exit status {code}\n{wrong}")
        elif counts["SKIP"]:
            part.skip(f"tests of {name}\n{wrong}")


def sanitizer(options, part):
    """compute-sanitizer over a short job and over short trials of all kernels."""
    path = os.environ["PATH"] + os.pathsep + "/usr/local/cuda/bin"
    tool = shutil.which(TOOL, path=path)
    if not tool:
        part.skip(f"{TOOL} is not installed: it is part of the CUDA toolkit")
        return
    job = jobs.prepare(options, "generated", options.dir / "sanitizer", 1024)
    train = [options.aibox, "train", job.file("dlrm", 64), *job.flags(Engine(options).keys())]
    trials = [options.programs / "kernels.test", CHOSEN["kernels.test"], "-test.short"]
    table = Table("tool", "program", "errors")
    for check in ("memcheck", "racecheck", "initcheck", "synccheck"):
        for name, command in (("a job", train), ("trials of kernels", trials)):
            try:
                code, printed = run([tool, "--tool", check, "--error-exitcode", "9", *command], timeout=MOST)
            except subprocess.TimeoutExpired:
                part.skip(f"{check} of {name}: it takes longer than {MOST} s")
                continue
            if unfit := next((words for words in UNFIT if words in printed), None):
                part.skip(f"{TOOL} cannot work here: {unfit}")
                return
            summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", printed)
            table.row(check, name, summary[-1] if summary else "no summary")
            if code:
                part.fail(f"{check} of {name}: exit status {code}\n{printed}")
