"""Small whole jobs: every model against the CPU, and repeated runs of the same model."""

import functools
import itertools
import json
import pathlib
import shutil
import subprocess
import tempfile

from part import Engine, Table, sides

MODELS = ["lr", "fm", "wide_deep", "deepfm", "dcn", "dcn_v2", "dlrm", "aibox"]
# The section `data` of a job file without its files, and the places of the files of --data.
SETS = {
    "criteo": ("criteo_terabyte_day0_10k/day_0.10k.tsv", {"format": "criteo"}),
    "movielens": ("movielens_latest_small/ratings.csv", {
        "format": "csv", "header": True, "label": "rating >= 4",
        "columns": [
            {"name": "userId"}, {"name": "movieId"}, {"name": "rating", "role": "label"},
            {"name": "timestamp", "role": "ignore"}, {"name": "genres", "separator": "|"}]}),
    "generated": (None, {"format": "criteo"}),
}
# The learning rate of rows in all models. At the default, 0.05, DLRM with seed 7 is close to collapse on movielens:
# products in tf32 or bf16 changed its log loss by 0.004 and its AUC by 0.010 on the CPU, and tf32 by 0.003 and 0.007 on
# an H100.
LEARNING_RATE = 0.01
KILLS = 5  # how often a job that is to be killed is started at most
# Tolerances of log loss and AUC against the CPU, which sums in another order. In float32 on the CPU, changing the
# initial rows by millionths moved them by up to 0.0002 and 0.0003; DLRM by 0.0001. For the other precisions, the
# tolerance is twice the difference between float32 and bf16 for DLRM in ten seeds: up to 0.0007 and 0.0013 on
# movielens, and 0.005 AUC on criteo, which has 55 clicks. Emulated tf32 was as far from float32 in one of six.
TOLERANCE = {"float32": (0.0005, 0.001), "tf32": (0.0015, 0.01), "bf16": (0.0015, 0.01)}


def near(got, want, precision):
    """Whether the models of two reports differ by rounding only."""
    return all(abs(got[key] - want[key]) < most for key, most in zip(("log_loss", "auc"), TOLERANCE[precision]))


class Job:
    """A directory with the files train and eval, and job files for them."""

    def __init__(self, options, name, directory):
        self.aibox, self.name, self.directory = options.aibox, name, directory
        directory.mkdir(parents=True, exist_ok=True)
        self.ending = {"criteo": "tsv", "movielens": "csv", "generated": "tsv"}[name]

    def path(self, part):
        return self.directory / f"{part}.{self.ending}"

    def run(self, *command):
        done = subprocess.run([self.aibox, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"aibox {' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}")

    def make(self, source, examples):
        """Writes the first four fifths of the set as train, and the rest as eval."""
        train, held_out = self.path("train"), self.path("eval")
        if self.name == "criteo":
            lines = source.read_text().splitlines(keepends=True)
            cut = len(lines) * 4 // 5
            train.write_text("".join(lines[:cut]))
            held_out.write_text("".join(lines[cut:]))
        elif self.name == "movielens":
            self.run("convert", "--from", source, "--join", source.parent / "movies.csv", "--on", "movieId", "--add", "genres",
                     "--sort-by", "timestamp", "--split", "0.8", "--to", train, "--to", held_out)
        else:
            self.run("generate", sides.JOB, *sides.flags({
                "data.train": [str(train)], "data.eval": [str(held_out)],
                "generate.train_examples": examples, "generate.eval_examples": examples // 4}))

    def file(self, model, batch, **more):
        """A job file for a model; JSON is YAML."""
        file = self.directory / f"{model}-{batch}.json"
        file.write_text(json.dumps({
            "name": f"{self.name}-{model}", "seed": 7,
            "data": {**SETS[self.name][1], "train": [str(self.path("train"))], "eval": [str(self.path("eval"))], "shuffle_buffer": 200_000},
            "model": {"kind": model, **more}, "optimizer": {"rows": {"learning_rate": LEARNING_RATE}}, "training": {"batch_size": batch},
            "output": {"model_dir": "model", "tensorboard": "none"}}))
        return file

    def flags(self, keys):
        # Even bad models are compared.
        return sides.flags({"snapshots.every": "none", "training.accept_diverged": True, **keys})

    def train(self, file, keys, kill=False):
        """Runs a job and returns its summary. On request, the job is first killed, and then resumes from its snapshot.
        It has a unique name, since several jobs of the same file may run at the same time."""
        model = pathlib.Path(tempfile.mkdtemp(prefix="model-", dir=self.directory))
        keys = {**keys, "name": model.name, "output.model_dir": str(model)}
        if kill:
            keys["snapshots.every"] = "2 passes"
        try:
            if kill:
                self.kill_amid(file, keys, model)
            self.run("train", file, *self.flags(keys))
            lines = map(json.loads, (model / "metrics.jsonl").read_text().splitlines())
            losses = [line["log_loss"] for line in lines if line["kind"] == "train"]  # of the steps, if each is written
            return {**summary_of(model), "losses": losses}
        finally:
            shutil.rmtree(model)

    def kill_amid(self, file, keys, model):
        """Starts a job, and kills it as soon as it has a snapshot. If the job ends first, as on a busy machine, this is
        retried a few times."""
        line = [self.aibox, "train", file, "--log-format", "json", *self.flags(keys)]
        for _ in range(KILLS):
            with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
                if any('"snapshot saved"' in entry for entry in process.stderr):
                    process.kill()
            if process.returncode and not (model / "summary.json").exists():
                return
            shutil.rmtree(model)
            model.mkdir()


def summary_of(model):
    return json.loads((model / "summary.json").read_text())


def prepare(options, name, directory, examples=20_000):
    """A job on a set. Sets that have a place in SETS need --data."""
    job, where = Job(options, name, directory), SETS[name][0]
    job.make(where and pathlib.Path(options.data) / where, examples)
    return job


def models(options, part):
    """Compares each model on each set, in all precisions."""
    names = ["criteo", "movielens"] if options.data else ["generated"]
    if not options.data and not options.quick:
        part.skip("criteo and movielens, without --data")
    engine = Engine(options)
    table = Table("set", "model", "precision", "embeddings", "log loss", "on the CPU", "AUC", "on the CPU", "differs")
    sets = [prepare(options, name, options.dir / name, 2_000 if options.quick else 20_000) for name in names]
    files = [(job, model, job.file(model, 256)) for job in sets for model in MODELS]
    # All in float32 first, in case time runs out.
    cases = [(job, model, file, precision) for precision in engine.precisions() for job, model, file in files]
    found_of = part.together(functools.partial(reports, engine, job, file, precision) for job, _, file, precision in cases)
    for (job, model, _, precision), found in zip(cases, found_of):
        what = f"{model} on {job.name} in {precision}"
        if isinstance(found, RuntimeError):
            part.fail(f"{what}: {found}")
            continue
        want, on_devices = found
        for embeddings, got in on_devices.items():
            good = near(got, want, precision)
            figures = [f"{report[key]:.5f}" for key in ("log_loss", "auc") for report in (got, want)]
            table.row(job.name, model, precision, embeddings, *figures, "" if good else "yes")
            if not good:
                part.fail(f"{what}, embeddings: {embeddings}: it differs from the CPU")


def reports(engine, job, file, precision):
    """The results of one model on the host's processors, and with its embeddings in each place."""
    # The CPU has no tf32, so tf32 is compared with float32, which it is nearer to than to bf16.
    want = job.train(file, {"engine.kind": "cpu", "engine.precision": "bf16" if precision == "bf16" else "float32"})["eval"]
    return want, {embeddings: job.train(file, engine.keys(precision, embeddings=embeddings))["eval"] for embeddings in engine.placements()}


LOSSES = 1e-4  # relative tolerance of a step's loss in float32 against the CPU
NO_LAYERS = "–"  # models without layers have no activation


def losses(options, part):
    """Compares the losses of the first 1,000 steps of each model with the CPU. The bound applies in float32 with tanh
    and with Adagrad whose sums do not begin at zero, so that its steps are smooth functions of gradients. The other
    losses are for information: if rounding changes the sign of one ReLU's input, its gradient jumps, and Adam turns
    that into whole steps. On the CPU, with sums in another order, losses differed by less than 1e-7 before such a jump
    and by up to 5e-2 in step 1,000; with tanh, by less than 1e-7 in all steps."""
    steps, batch = (50, 16) if options.quick else (1000, 64)
    engine = Engine(options)
    job = prepare(options, "generated", options.dir / "losses", steps * batch)
    table = Table("model", "activation", "precision", "embeddings", "steps", "largest relative difference", "in step", "differs")
    files = {model: job.file(model, batch) for model in MODELS}
    cases = [(model, NO_LAYERS if model in ("lr", "fm") else "tanh", "float32") for model in MODELS]
    cases += [("dlrm", "tanh", precision) for precision in engine.precisions()[1:]]
    cases += [(model, "relu", "float32") for model, activation, _ in cases[:len(MODELS)] if activation == "tanh"]
    found_of = part.together(functools.partial(losses_of, engine, job, files[model], activation, precision) for model, activation, precision in cases)
    for case, found in zip(cases, found_of):
        what, (_, activation, precision) = " ".join(case), case
        if isinstance(found, RuntimeError):
            part.fail(f"{what}: {found}")
            continue
        want, on_devices = found
        for embeddings, got in on_devices.items():
            if not len(got) == len(want) == steps:
                part.fail(f"{what}, embeddings: {embeddings}: there are losses of {len(got)} steps, and of {len(want)} on the CPU, not of {steps}")
                continue
            differences = [abs(a - b) / b for a, b in zip(got, want)]
            worst = max(range(steps), key=differences.__getitem__)
            good = precision != "float32" or activation == "relu" or differences[worst] <= LOSSES
            table.row(*case[:2], precision, embeddings, len(got), f"{differences[worst]:.1e}", worst + 1, "" if good else "yes")
            if not good:
                part.fail(f"{what}, embeddings: {embeddings}: it differs from the CPU")


def losses_of(engine, job, file, activation, precision):
    """The losses of all steps on the host's processors in float32, and with the embeddings in each place."""
    each = {"output.log_every": 1, "data.shuffle_buffer": 0, "optimizer.rows.initial_accumulator": 0.1}
    if activation != NO_LAYERS:
        each["model.activation"] = activation
    want = job.train(file, {**each, "engine.kind": "cpu"})["losses"]
    return want, {embeddings: job.train(file, {**each, **engine.keys(precision, embeddings=embeddings)})["losses"] for embeddings in engine.placements()}


# The devices of the same job, and how often it runs on them.
DEVICES = ([0], 3), ([0, 0], 2), ([0, 0, 0, 0], 2)


def determinism(options, part):
    """Compares digests of models that should be equal, and models of several devices with that of one, which should be
    close. One run of each was killed and has resumed from its snapshot."""
    engine = Engine(options)
    job = prepare(options, "generated", options.dir / "determinism", 10_000 if options.quick else 20_000)
    table = Table("model", "precision", "embeddings", "devices", "runs", "digest", "log loss")
    network = {"hidden_layers": [64, 32], "dropout": 0.1, "batch_norm": True}
    files = {model: job.file(model, 256, **more) for model, more in (("dlrm", {}), ("deepfm", network))}
    cases = [(model, precision, embeddings) for model in files for precision in (engine.precisions() if model == "dlrm" else ["float32"])
             for embeddings in engine.placements()]
    # Passes are short, so that there is a snapshot early. Concurrent runs disturb each other's timing, which makes
        # missing synchronization likelier to show.
    made = part.together(
        functools.partial(job.train, files[model], {**engine.keys(precision, devices, embeddings), "pipeline.batches_per_pass": 2}, run == 1)
        for model, precision, embeddings in cases for devices, runs in DEVICES for run in range(runs))
    for what in cases:
        first = None
        for devices, runs in DEVICES:
            summaries = list(itertools.islice(made, runs))
            if len(summaries) < runs:  # there is no time left
                return
            if failed := [s for s in summaries if isinstance(s, RuntimeError)]:
                part.fail(f"{what}, devices {devices}: {failed[0]}")
                continue
            digests, report = {summary["digest"] for summary in summaries}, summaries[0]["eval"]
            first = first or report
            table.row(*what, devices, runs, " and ".join(sorted(digest[:16] for digest in digests)), f"{report['log_loss']:.5f}")
            if not summaries[1].get("resumed"):
                part.skip(f"{what}, devices {devices}: going on from a snapshot: the job ended before it was killed")
            if len(digests) > 1:
                part.fail(f"{what}, devices {devices}: {len(digests)} different models")
            if not near(report, first, what[1]):
                part.fail(f"{what}, devices {devices}: it differs from the model of one device")
