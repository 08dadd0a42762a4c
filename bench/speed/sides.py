"""The programs that are compared: those that answer requests, and whole jobs."""

import json
import os
import pathlib
import subprocess
import sys
import time

import models

HERE = pathlib.Path(__file__).resolve().parent
JOB = HERE / "job.yaml"
# The learning rates of job.yaml, which PyTorch gets as arguments.
DENSE_RATE, ROW_RATE = 0.1, 1.0
# Examples in the log for evaluation.
HELD_OUT = 65536
# Seconds after which idle threads of OpenMP no longer spin.
SETTLE = 0.05


def on_cores(cores, command):
    """The command, restricted to the given number of cores."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    return ["taskset", "-c", ",".join(map(str, allowed)), *map(str, command)]


class Side:
    """A process that answers requests, one JSON object a line."""

    def __init__(self, command):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            sys.exit(f"{' '.join(self.command)} ended while it worked on {request}")
        time.sleep(SETTLE)
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def build(directory):
    """Builds aibox and the Go program of this directory, and returns their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    programs = directory / "aibox", directory / "speed"
    for binary, package in zip(programs, ("../../cmd/aibox", ".")):
        subprocess.run(["go", "build", "-o", binary, package], cwd=HERE, check=True)
    return programs


class Place:
    """A directory with the log as text and as Parquet, which is made if it is missing, and on request as binary files
    for PyTorch. programs is the result of build."""

    def __init__(self, directory, python, programs, examples, held_out=HELD_OUT, inputs=("text", "parquet")):
        self.directory, self.python, self.examples, self.held_out, self.inputs = directory, python, examples, held_out, inputs
        directory.mkdir(parents=True, exist_ok=True)
        self.aibox, self.speed = programs
        self.has_bf16 = self.accepts({"engine.precision": "bf16"})
        self.unless_made("log.json", self.generate)

    def accepts(self, overrides):
        """Whether aibox knows the keys of the overrides."""
        done = subprocess.run([self.aibox, "config", "show", JOB, *flags(overrides)], capture_output=True)
        return done.returncode == 0

    def input(self, name, input="text"):
        """The overrides that name the files of a log."""
        ending = {"text": "tsv", "parquet": "parquet"}[input]
        files = {"data.train": [f"{self.directory}/{name}.{ending}"], "data.eval": [f"{self.directory}/eval.{ending}"]}
        return files if input == "text" else {**files, "data.format": "parquet", "data.columns": COLUMNS}

    def unless_made(self, name, make):
        """Calls make, unless a file of that name in the directory records that this was done for the same log."""
        made = self.directory / name
        wanted = {"examples": self.examples, "held_out": self.held_out, "job": JOB.read_text()}
        if not made.exists() or json.loads(made.read_text()) != wanted:
            make()
            made.write_text(json.dumps(wanted))

    def generate(self):
        """Writes the log."""
        print(f"making the log in {self.directory}", file=sys.stderr)
        for input in self.inputs:
            overrides = {
                **self.input("train", input),
                "generate.train_examples": self.examples, "generate.eval_examples": self.held_out,
            }
            self.run("generate", overrides)

    def number(self):
        """Writes the log as binary files, in which keys are numbers."""
        side = Side([str(self.speed)])
        side.ask(op="number", job=str(JOB), set=settings(self.input("train", "parquet")), output=str(self.directory))
        side.close()

    def for_torch(self):
        """The directory with the binary files, which are made if they are missing."""
        self.unless_made("numbers.json", self.number)
        return self.directory

    def filled(self, overrides, examples):
        """The summary and the directory of a model trained on a log of that many examples, fill.parquet. Log and model
        are made if they are missing."""
        model, made = self.directory / "filled", self.directory / "filled.json"
        wanted = {"examples": examples, "job": JOB.read_text(), **overrides}
        if not made.exists() or json.loads(made.read_text()) != wanted:
            print(f"making a model that has seen {examples} examples", file=sys.stderr)
            fill = self.input("fill", "parquet")
            self.run("generate", {**fill, "generate.train_examples": examples, "generate.eval_examples": 0})
            self.run("train", {**fill, **overrides, "data.eval": [], "output.model_dir": str(model)})
            made.write_text(json.dumps(wanted))
        return {**json.loads((model / "summary.json").read_text()), "model": str(model)}

    def run(self, command, overrides, cores=None, more=()):
        """Runs a command of aibox on the job and returns its seconds and its log."""
        line = [self.aibox, command, JOB, *flags(overrides), "--log-format", "json", *more]
        begin = time.perf_counter()
        done = subprocess.run(on_cores(cores, line), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"aibox {command} failed:\n{done.stderr}")
        log = [json.loads(entry) for entry in done.stderr.splitlines()]
        return time.perf_counter() - begin, log

    def torch(self, *arguments):
        return [self.python, HERE / "torch_side.py", "--data", self.for_torch(), *arguments]

    def train(self, overrides, cores=None):
        """Runs a job of aibox and returns its summary, with the seconds of the whole process, and
        the lines of progress in its log."""
        model = self.directory / "model"
        process, log = self.run("train", {**overrides, "output.model_dir": str(model)}, cores)
        progress = [entry for entry in log if entry["msg"] == "progress" and entry["phase"] == "training"]
        summary = json.loads((model / "summary.json").read_text())
        return {**summary, "process_seconds": process, "progress": progress}

    def torch_job(self, model, batch, precision, compiled, examples, cores=None):
        """Runs the same job in PyTorch."""
        arguments = [
            "--job", model, "--batch", batch, "--precision", precision, "--examples", examples,
            "--dense-rate", DENSE_RATE, "--row-rate", ROW_RATE, *(["--compiled"] if compiled else []),
        ]
        begin = time.perf_counter()
        done = subprocess.run(on_cores(cores, self.torch(*arguments)), check=True, stdout=subprocess.PIPE, text=True)
        return {**json.loads(done.stdout), "process_seconds": time.perf_counter() - begin}


def flags(overrides):
    return [part for setting in settings(overrides) for part in ("--set", setting)]


def settings(overrides):
    """Overrides as aibox takes them; JSON is YAML."""
    return [f"{key}={json.dumps(value)}" for key, value in overrides.items()]


COLUMNS = [
    {"name": "label", "role": "label"},
    *({"name": f"I{i + 1}", "role": "dense", "transform": ["log1p"], "missing": 0} for i in range(models.DENSE)),
    *({"name": f"C{i + 1}"} for i in range(models.FIELDS)),
]
