"""The measurements. Each function yields samples: dictionaries of what was measured (level, side,
turn and others) and the examples per second."""

import models
import sides

# The sides of PyTorch, and whether they are compiled.
PEERS = {"eager": False, "compiled": True}

# Memory of a table on SSD: bytes per row in its cache, and bytes for its index, filters, buffers and the working sets
# of passes.
ROW_BYTES, OTHER_BYTES = 128, 36 << 20


def configuration(model, batch, precision):
    """The overrides of job.yaml."""
    chosen = {"model": models.section(model), "training.batch_size": batch}
    return chosen if precision == "float32" else {**chosen, "engine.precision": precision}


class Steps:
    """Steps with embeddings in memory, on mini-batches that were read before."""

    def __init__(self, place, options, cores=None):
        self.place, self.options = place, options
        self.ours = sides.Side(sides.on_cores(cores, [place.speed]))
        self.peers = sides.Side(sides.on_cores(cores, place.torch()))

    def ask(self, side, model, batch, precision, **more):
        common = {"op": "step", "examples": self.options.step_examples, "seconds": self.options.seconds}
        if side == "aibox":
            overrides = {**configuration(model, batch, precision), **self.place.input("train", "parquet")}
            answer = self.ours.ask(**common, **more, job=str(sides.JOB), set=sides.settings(overrides))
        else:
            answer = self.peers.ask(
                **common, model=model, batch=batch, precision=precision, compiled=PEERS[side],
                dense_rate=sides.DENSE_RATE, row_rate=sides.ROW_RATE)
        return {"examples_per_second": answer["examples"] / answer["seconds"], **answer}

    def close(self):
        self.ours.close()
        self.peers.close()


def variants(place, options, level, precision):
    """The sides that have the precision. The quick size leaves out compiled ones to save time."""
    ours = ["aibox"] if precision == "float32" or place.has_bf16 else []
    if options.quick and (level == "job" or precision == "bf16"):
        return [*ours, "eager"]
    return [*ours, *PEERS]


def step(place, options):
    """A step with embeddings in memory."""
    steps = Steps(place, options)
    for model in options.models:
        for batch in options.batches:
            chosen = [(side, precision) for precision in options.precisions for side in variants(place, options, "step", precision)]
            for turn in range(-1, options.turns):  # the first one opens, compiles and warms up
                peak = steps.ours.ask(op="peak")
                for side, precision in chosen:
                    answer = steps.ask(side, model, batch, precision)
                    if turn >= 0:
                        of_peak = answer["examples_per_second"] * models.multiply_adds(model) / peak["fma"]
                        yield {"level": "step", "model": model, "batch": batch, "precision": precision,
                               "side": side, "turn": turn, "of_peak": of_peak, **answer}
            if options.profile:
                for precision in options.precisions:
                    if "aibox" in variants(place, options, "step", precision):
                        file = options.profile / f"{model}-{batch}-{precision}.pprof"
                        steps.ask("aibox", model, batch, precision, profile=str(file))
    steps.close()


def job(place, options):
    """The whole job: reading, training, and the log loss on held-out examples."""
    for batch in options.job_batches:
        for turn in range(options.turns):
            for precision in options.precisions:
                for side in variants(place, options, "job", precision):
                    for input in options.inputs if side == "aibox" else ["binary"]:
                        yield {"level": "job", "model": "dlrm", "batch": batch, "precision": precision, "side": side,
                               "input": input, "turn": turn, **run_job(place, options, side, batch, precision, input)}


def run_job(place, options, side, batch, precision, input, cores=None):
    """One job of one side."""
    if side != "aibox":
        result = place.torch_job("dlrm", batch, precision, PEERS[side], options.examples, cores)
        return {"examples_per_second": result["examples"] / result["seconds"], **result}
    summary = place.train({
        **configuration("dlrm", batch, precision), **place.input("train", input),
        "training.max_examples": options.examples}, cores)
    return {"examples_per_second": summary["training_examples_per_second"], "examples": summary["trained_examples"],
            "process_seconds": summary["process_seconds"], "log_loss": summary["eval"]["log_loss"],
            "stages": summary["epochs"][-1]["stages"]}


def cores(place, options):
    """One core against two: a step and a job of DLRM, in float32, on both sides."""
    batch = 2048
    steps = {n: Steps(place, options, n) for n in (1, 2)}
    for turn in range(-1, options.turns):
        for side in ("aibox", *PEERS):
            for n in steps:
                answer = steps[n].ask(side, "dlrm", batch, "float32")
                if turn >= 0:
                    yield {"level": "cores", "what": "step", "side": side, "cores": n, "turn": turn, **answer}
    for n in steps:
        steps[n].close()
    for turn in range(options.turns):
        for side, input in (("aibox", "parquet"), ("eager", "binary")):
            for n in steps:
                yield {"level": "cores", "what": "job", "side": side, "cores": n, "turn": turn,
                       **run_job(place, options, side, batch, "float32", input, n)}


def table(place, options):
    """A job with its table in memory, and on SSD with a cache for a tenth of the rows. It starts
    from a model trained on its examples and many others, so that no row is new to the table. The
    speed is that of the second half, when the cache has filled. A pass has four mini-batches; so
    its rows take about the same share of the cache as those of sixteen mini-batches would with a
    table of 20 million rows."""
    filled = place.filled(configuration("dlrm", 2048, "float32"), options.fill_examples)
    rows = filled["table"]["rows"]
    common = {
        **configuration("dlrm", 2048, "float32"), **place.input("fill", "parquet"), "data.eval": [],
        "data.limit": options.table_examples, "training.warm_start": filled["model"], "pipeline.batches_per_pass": 4,
    }
    on_ssd = {"sparse_table.kind": "ssd", "sparse_table.memory_bytes": rows // 10 * ROW_BYTES + OTHER_BYTES}
    for turn in range(options.turns):
        for kind, overrides in (("memory", {}), ("ssd", on_ssd)):
            summary = place.train({**common, **overrides})
            epoch = summary["epochs"][-1]
            learning = next(stage for stage in epoch["stages"] if stage["name"] == "EL+JL")
            yield {"level": "table", "kind": kind, "turn": turn, "rows": rows,
                   "cache_rows": summary["table"].get("cache_rows"), "stages": epoch["stages"],
                   "table": summary["table"], **second_half(summary["progress"], epoch),
                   "learning": learning["busy_seconds"] / epoch["seconds"]}


def second_half(progress, epoch):
    """The number of examples and the examples per second of about the second half of an epoch, or of the whole epoch
    if it is too short for lines of progress."""
    points = [(0, 0)] + [(line["seconds"], line.get("examples", 0)) for line in progress]
    begin = min(points, key=lambda point: abs(point[1] - epoch["examples"] / 2))
    examples = epoch["examples"] - begin[1]
    return {"examples": examples, "examples_per_second": examples / (epoch["seconds"] - begin[0])}


LEVELS = {"step": step, "job": job, "table": table, "cores": cores}
