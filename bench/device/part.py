"""Code shared by the parts of the check."""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

SPEED = pathlib.Path(__file__).resolve().parent.parent / "speed"
sys.path.insert(0, str(SPEED))
import sides  # noqa: E402

SPARE = 2  # seconds that a part needs to end


class Part:
    """The failures and skips of one part, and its time limit. They are printed last, so as not to interrupt tables."""

    def __init__(self, seconds):
        self.failures, self.skipped, self.until = [], [], time.monotonic() + seconds

    def left(self):
        """The seconds that are left."""
        return self.until - time.monotonic()

    def in_time(self, cases):
        """Yields cases while there is time, assuming each takes about as long as the one before. It skips the others."""
        took = 0
        for case in cases:
            if self.left() < 1.25 * took:
                self.skip(f"{case}: there is no time left")
                continue
            begin = time.monotonic()
            yield case
            took = time.monotonic() - begin

    def together(self, tasks, most=4):
        """Calls functions, at most `most` at a time, and yields their results in order; for one that fails, its
        RuntimeError. It stops when time runs out; functions that are still running continue until the part ends."""
        def call(task):
            try:
                return task()
            except RuntimeError as e:
                return e

        pool = concurrent.futures.ThreadPoolExecutor(min(most, len(os.sched_getaffinity(0))))
        futures = [pool.submit(call, task) for task in tasks]
        try:
            for done, future in enumerate(futures):
                try:
                    yield future.result(max(0, self.left() - SPARE))
                except concurrent.futures.TimeoutError:
                    self.skip(f"all but the first {done} of {len(futures)} results: there is no time left")
                    return
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def fail(self, text):
        self.failures.append(text)

    def skip(self, text):
        self.skipped.append(text)

    def end(self):
        print()
        for words, texts in (("FAILED", self.failures), ("skipped", self.skipped)):
            for text in texts:
                first, *more = text.strip().splitlines() or [""]
                print(f"- {words}: {first}")
                if len(more) > 80:
                    more = [*more[:40], "…", *more[-40:]]
                if more:
                    print(fenced("\n".join(more)))

    def status(self):
        return 1 if self.failures else 3 if self.skipped else 0


class Table:
    """A Markdown table that prints each row as soon as it is known."""

    def __init__(self, *heads):
        self.row(*heads)
        self.row(*["---"] * len(heads))

    def row(self, *cells):
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def fenced(text):
    return f"```\n{text.rstrip()}\n```\n"


def output(command):
    """The output of a command, or why it does not run."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace").stdout
    except OSError as e:
        return f"{pathlib.Path(command[0]).name}: {e.strerror}"


class Engine:
    """The job file keys of an engine."""

    def __init__(self, options):
        self.aibox, self.cuda = options.aibox, options.engine == "cuda"

    def keys(self, precision="float32", devices=(0,), embeddings="host"):
        chosen = {"engine.precision": precision} if precision != "float32" else {}
        if not self.cuda:
            return chosen
        chosen.update({"engine.kind": "cuda", "engine.devices": list(devices)})
        if word := self.placements().get(embeddings):
            chosen["engine.embeddings"] = word
        return chosen

    def placements(self):
        """The places of embeddings, host first, and their names in a job file; none for a program that has only one."""
        if not hasattr(self, "found"):
            self.found = {"host": next((word for word in ("host", "cpu") if self.knows(word)), None)}
            if self.cuda and self.knows("device"):
                self.found["device"] = "device"
        return self.found

    def knows(self, word):
        return self.accepts({"engine.kind": "cuda", "engine.embeddings": word})

    def accepts(self, keys):
        done = subprocess.run([self.aibox, "config", "show", sides.JOB, *sides.flags(keys)], capture_output=True)
        return done.returncode == 0

    def precisions(self):
        return [p for p in ("float32", "tf32", "bf16") if self.accepts(self.keys(p))]


def log_of(options, examples, held_out=4096):
    """The log of bench/speed as Parquet."""
    programs = options.aibox, options.programs / "speed"
    return sides.Place(options.dir / "log", options.python, programs, examples, held_out, inputs=["parquet"])


def rate(values):
    """Thousands per second: the median, with the lowest and the highest."""
    if not values:
        return "–"
    values = sorted(v / 1000 for v in values)
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    return f"{middle:,.1f}" + (f" ({values[0]:,.1f}–{values[-1]:,.1f})" if len(values) > 1 else "")
