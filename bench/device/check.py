"""Checks and measures aibox on a machine with an NVIDIA device, and prints the results for docs/gpu.md as Markdown.

    ./check.sh                                  all parts, within 25 minutes
    ./check.sh --data DIR models determinism    only these parts
    ./check.sh --within 540                     within 540 seconds: each part gets its share and skips the rest
    ./check.sh --engine cpu --quick             parts without a device, in small sizes: a test of the check itself

Parts:

    tests         the tests of devices and of kernels, twice: each kernel on random shapes and with poisoned results,
                  against its formula in float64 and, bit for bit, against its twin
    models        all models, on the samples of --data or on a generated log, against the CPU
    losses        the losses of the first 1,000 steps of all models, against the CPU
    determinism   the same model three times; several logical devices on one physical device against one
    sanitizer     compute-sanitizer over a short job and over the trials of kernels
    faults        jobs where the device has too little memory, and where no device is visible
    operations    the time of each operation of a step
    speed         a step, compared with PyTorch in the same run and with the limits of the device
    job           the whole job from Parquet, and the stage that bounds it
    host          the reader and pulls of rows in memory, by number of threads

The parts from tests to determinism run concurrently, the others one by one. The other parts also run if one fails or
exceeds its time limit. The exit status is 0 if all parts passed, 3 if none failed but something was skipped, else 1.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import faults
import host
import jobs
import operations
import steps
import tests
from part import Part, Table, fenced, log_of, output

# The function and the time limit in seconds of each part. Parts that measure no speed run together, all others alone,
# which makes 25 minutes.
PARTS = {
    "tests": (tests.tests, 240),
    "models": (jobs.models, 140),
    "losses": (jobs.losses, 90),
    "determinism": (jobs.determinism, 180),
    "sanitizer": (tests.sanitizer, 180),
    "faults": (faults.faults, 60),
    "operations": (operations.operations, 60),
    "speed": (steps.speed, 600),
    "job": (host.job, 180),
    "host": (host.host, 100),
}
TOGETHER = ("tests", "models", "losses", "determinism")
ON_DEVICES = ("tests", "sanitizer", "faults")  # parts that mean nothing without one
WITH_LOG = ("operations", "speed", "job", "host")  # parts that need the log of bench/speed
RESULTS = {0: "passed", 3: "passed; some was skipped"}
COLOR = re.compile(r"\x1b\[[0-9;]*m")  # what makes text of a terminal coloured
GRACE = 5  # seconds for a part that is stopped to say what it has found


def parse():
    parser = argparse.ArgumentParser(prog="check.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help="default: all")
    add("--data", type=pathlib.Path, metavar="DIR", help="directory with criteo_terabyte_day0_10k and movielens_latest_small")
    add("--engine", choices=["cuda", "cpu"], default="cuda", help="what trains (default: %(default)s)")
    add("--within", type=int, metavar="SECONDS", help="time limit of all parts together; start-up before the first one comes on top")
    add("--quick", action="store_true", help="small sizes, whose figures are meaningless")
    add("--python", default=sys.executable, help="the Python that has PyTorch (default: this one)")
    add("--no-torch", action="store_true", help="do not measure PyTorch")
    add("--dir", type=pathlib.Path, help="directory for logs and models (default: a temporary one)")
    add("--programs", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2], help="directory of the programs (default: %(default)s)")
    add("--child", choices=PARTS, help=argparse.SUPPRESS)
    add("--seconds", type=float, help=argparse.SUPPRESS)  # of the child
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    options.parts = options.parts or [part for part in PARTS if options.engine == "cuda" or part not in ON_DEVICES]
    options.programs = options.programs.resolve()
    built = [options.programs / name for name in ("aibox-cuda", "aibox")]
    options.aibox = next((program for program in built if program.exists()), None)
    if options.aibox is None:
        parser.error(f"there is no aibox-cuda in {options.programs}: run this in bin/gpu-check, which `make build-cuda` fills")
    return options


# Prints where PyTorch's packages have the libraries of NVIDIA.
WHERE = """import importlib.util
spec = importlib.util.find_spec("nvidia")
print(*(spec.submodule_search_locations if spec else []), sep="\\n")"""


def find_libraries(options):
    """Adds the places of the driver in containers, and of PyTorch's cuBLAS and NCCL, to LD_LIBRARY_PATH."""
    places = output([options.python, "-c", WHERE]).splitlines()
    folders = ["/usr/local/nvidia/lib64", *(str(folder) for place in places for folder in sorted(pathlib.Path(place).glob("*/lib")))]
    known = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [*known, *folders]))


def hold():
    """Starts a program that keeps the devices open: else, without persistence mode, each program initializes them anew."""
    try:
        return subprocess.Popen(["nvidia-smi", "--loop=3600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return None


def heading(options):
    """Prints what the results were measured on."""
    print(f"### {time.strftime('%Y-%m-%d', time.gmtime())}, engine {options.engine}{', quick sizes' if options.quick else ''}\n")
    if options.engine == "cuda":
        query = "index,name,memory.total,driver_version,compute_mode,ecc.mode.current"
        for command in (["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"], ["nvidia-smi", "topo", "-m"]):
            print(fenced(COLOR.sub("", output(command))))
    print(fenced(output([options.aibox, "version"])))
    processors = {line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    print(f"{', '.join(processors)}, {len(os.sched_getaffinity(0))} cores, {memory} GiB\n", flush=True)


class Running:
    """One part, running in its own process, with its output."""

    def __init__(self, part, limit):
        self.part, self.limit, self.begin = part, limit, time.monotonic()
        self.printed = tempfile.TemporaryFile()
        command = [sys.executable, __file__, *sys.argv[1:], "--child", part, "--seconds", str(limit)]
        self.child = subprocess.Popen(command, start_new_session=True, stdout=self.printed)

    def end(self):
        """Waits for the part, prints its output, returns its result and seconds. At the time limit it kills the process group."""
        try:
            result = RESULTS.get(self.child.wait(max(0, self.begin + self.limit - time.monotonic())), "FAILED")
        except subprocess.TimeoutExpired:
            result = f"FAILED: it took longer than {self.limit:.0f} s"
        self.stop()
        return result, time.monotonic() - self.begin

    def stop(self):
        """Ends the part's remaining processes, and prints its output."""
        stop(self.child)
        self.printed.seek(0)
        print(f"#### {self.part}\n\n{self.printed.read().decode(errors='replace')}", flush=True)


def stop(child):
    """Ends the remaining processes of a part."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sent)
            child.wait(GRACE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            pass


def child(options):
    """Runs one part, in its own process."""
    part = Part(options.seconds)
    try:
        PARTS[options.child][0](options, part)
    except Exception as e:  # its earlier findings still count
        part.fail(f"{type(e).__name__}: {e}")
    except SystemExit as e:
        part.fail(str(e))
    except KeyboardInterrupt:
        part.fail("stopped")
    finally:
        part.end()
    tests.stop()
    sys.stdout.flush()
    os._exit(part.status())  # without waiting for jobs that are still running, which the parent kills


def groups(parts):
    """The parts in the order in which they run: lists of those that run together, each with its time limit in seconds."""
    together = [part for part in parts if part in TOGETHER]
    all_groups = ([together] if together else []) + [[part] for part in parts if part not in TOGETHER]
    return [(group, max(PARTS[part][1] for part in group)) for group in all_groups]


def run_all(options):
    """Runs all parts, and returns their results. Each group gets a share of the remaining time, so that later groups
    can use what earlier ones leave."""
    results, found = {}, groups(options.parts)
    until = time.monotonic() + (options.within or sum(weight for _, weight in found))
    if set(WITH_LOG) & set(options.parts):
        begin = time.monotonic()
        try:
            log_of(options, steps.Size(options.quick).examples)
            print(f"The log was made in {time.monotonic() - begin:.0f} s.\n", flush=True)
        except (Exception, SystemExit) as e:  # the parts that need it will fail
            print(f"The log could not be made: {e}\n", flush=True)
    for i, (group, weight) in enumerate(found):
        share = weight / sum(other for _, other in found[i:])
        running = []
        try:
            for part in group:
                running.append(Running(part, max(GRACE, share * (until - time.monotonic()))))
            while running:
                results[running[0].part] = running[0].end()
                running.pop(0)
        finally:
            for each in running:  # if the check is interrupted
                each.stop()
    return results


def main():
    options = parse()
    if options.child:
        child(options)
    find_libraries(options)
    holder = hold() if options.engine == "cuda" else None
    try:
        with tempfile.TemporaryDirectory(prefix="aibox-check-") as directory:
            if not options.dir:
                sys.argv[1:1] = ["--dir", directory]
                options.dir = pathlib.Path(directory)
            heading(options)
            results = run_all(options)
    finally:
        if holder:
            holder.kill()
    table = Table("part", "result", "seconds")
    for part, (result, seconds) in results.items():
        table.row(part, result, f"{seconds:.0f}")
    if all(result == RESULTS[0] for result, _ in results.values()):
        return 0
    return 3 if all(result in RESULTS.values() for result, _ in results.values()) else 1


if __name__ == "__main__":
    # As KeyboardInterrupt, since handlers of SystemExit take that for a failure.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped")
