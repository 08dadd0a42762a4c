"""The tests that need a device, and compute-sanitizer."""

import collections
import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess

import jobs
from part import Engine, Table

KERNELS = "-test.run=^TestDevice$"
# The test program, its options, its time limit in seconds, and whether it runs twice. Excluded tests need the sources,
# or are for machines without a device. Tests that make a device fail have their own process, which may be unusable
# afterwards. The others run twice unless time is short, since missing synchronization does not show in every run.
RUNS = [
    ("kernels.test", [KERNELS], 80, True),
    ("cuda.test", ["-test.skip=^TestFake$|^TestConformance/^Broken$|^TestGroupBreaks$"], 110, True),
    ("cuda.test", ["-test.run=^TestConformance$/^Broken$"], 20, False),
    ("cuda.test", ["-test.run=^TestGroupBreaks$"], 20, False),
]
LINES = re.compile(r"^ *--- (PASS|FAIL|SKIP): ", re.MULTILINE)
TOOL = "compute-sanitizer"
# The tools, with options; all run concurrently. NVIDIA's libraries probe the driver by calls that fail, which memcheck
# would count as errors; aibox itself reports its failed calls.
CHECKS = {"initcheck": [], "synccheck": [], "racecheck": [], "memcheck": ["--report-api-errors", "no"]}
SPARE = 10  # seconds reserved at the end of a part, in which nothing runs
UNFIT = ["Device not supported", "Unable to find injection library"]  # messages of the tool if it cannot work


running = set()  # processes started by run, each the leader of its own process group


def run(command, timeout=None):
    """Runs a program and returns its exit status and its output. At the timeout it kills the whole process group."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True) as process:
        running.add(process)
        try:
            printed, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            running.discard(process)
    return process.returncode, printed


def stop():
    """Kills the running processes, for which other threads wait."""
    for process in list(running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def tests(options, part):
    """Runs the test programs concurrently."""
    table = Table("program", "chosen", "passed", "failed", "skipped")
    runs = [(name, [*chosen, "-test.count=2"] if again and not options.within else chosen, max(1, int(min(seconds, part.left() - SPARE))))
            for name, chosen, seconds, again in RUNS]
    lines = [[options.programs / name, "-test.v", f"-test.timeout={seconds}s", *chosen] for name, chosen, seconds in runs]
    found_of = part.together([functools.partial(run, line) for line in lines])
    for (_, _, most, _), (name, chosen, seconds), (code, printed) in zip(RUNS, runs, found_of):
        what = f"{name} {' '.join(chosen)}"
        if seconds < most and "panic: test timed out" in printed:
            part.skip(f"{what}: it takes longer than {seconds} s")
            continue
        counts = collections.Counter(LINES.findall(printed))
        table.row(name, f"`{' '.join(chosen)}`".replace("|", "\\|"), counts["PASS"], counts["FAIL"], counts["SKIP"])
        wrong = "\n".join(line for line in printed.splitlines() if not line.startswith("=== ") and "--- PASS" not in line)
        if code or not counts["PASS"] + counts["SKIP"]:
            part.fail(f"{what}: exit status {code}\n{wrong}")
        elif counts["SKIP"]:
            part.skip(f"tests of {what}\n{wrong}")


def sanitizer(options, part):
    """Runs compute-sanitizer over a short job and over short trials of all kernels."""
    path = os.environ["PATH"] + os.pathsep + "/usr/local/cuda/bin"
    tool = shutil.which(TOOL, path=path)
    if not tool:
        part.skip(f"{TOOL} is not installed: it is part of the CUDA toolkit")
        return
    job = jobs.prepare(options, "generated", options.dir / "sanitizer", 1024)
    train = [options.aibox, "train", job.file("dlrm", 64)]
    keys = Engine(options).keys(embeddings="device")
    trials = [options.programs / "kernels.test", KERNELS, "-test.short"]
    table = Table("tool", "program", "errors")
    cases = [case for check in CHECKS for case in (
        # Concurrent jobs need different names and models.
        (check, "a job", [*train, *job.flags({**keys, "name": check, "output.model_dir": str(job.directory / check)})]),
        (check, "trials of kernels", trials))]
    found_of = part.together((functools.partial(checked, tool, check, command, part.left() - SPARE) for check, _, command in cases), most=len(cases))
    for (check, name, _), found in zip(cases, found_of):
        if found is None:
            part.skip(f"{check} of {name}: there is no time left")
            continue
        code, printed = found
        if unfit := next((words for words in UNFIT if words in printed), None):
            part.skip(f"{TOOL} cannot work here: {unfit}")
            return
        summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (.*)", printed)
        table.row(check, name, summary[-1] if summary else "no summary")
        if code:
            part.fail(f"{check} of {name}: exit status {code}\n{printed}")


def checked(tool, check, command, seconds):
    """The exit status and the output of a program under a tool; None at the timeout."""
    try:
        return run([tool, "--tool", check, "--error-exitcode", "9", *CHECKS[check], *command], timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
