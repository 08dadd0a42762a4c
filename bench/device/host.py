"""The whole job, and the host's parts of it: reading, and pulling rows."""

import os
import shutil

from part import Engine, Table, log_of, rate, sides
from steps import Size

JOB_GOAL = "Goal: 1,000 thousand examples a second, from Parquet, with the table in memory, on 16 cores."
CACHE_BYTES = 4 << 30  # for all rows of the log; a table without all rows in memory is refused


def job(options, part):
    """Measures the second of two epochs over four copies of the log: the table has all rows then."""
    size, engine = Size(options.quick), Engine(options)
    place = log_of(options, size.examples)
    files = four(place)
    print(f"The whole job of DLRM, second of two epochs, thousands of examples a second, and the share of the time that each stage was busy. {JOB_GOAL}\n")
    table = Table("batch", "precision", "embeddings", "examples", "RE", "ST", "EL+JL", "what bounds it", "rows that stayed on the device", "rows it waited for", "time it waited for rows", "step, µs", "device at work")
    _, middle, large = size.batches
    precise, fast = engine.precisions()[:2]
    cases = [(batch, precision, where) for batch, precision in ((middle, fast), (middle, precise), (large, fast)) for where in reversed(engine.placements())]
    for batch, precision, where in part.in_time(cases):
        try:
            summary = place.train({
                **engine.keys(precision, embeddings=where), **place.input("train", "parquet"),
                "data.train": files, "data.eval": [], "training.batch_size": batch, "training.epochs": 2,
                # Enough passes for the stages to overlap.
                "pipeline.batches_per_pass": max(1, size.examples // 8 // batch), "snapshots.every": "none"})
        except SystemExit as e:
            part.fail(f"the job with mini-batches of {batch} in {precision}, embeddings: {where}: {e}")
            continue
        epoch = summary["epochs"][-1]
        busy = {stage["name"]: f"{stage['busy_seconds'] / epoch['seconds']:.0%}" for stage in epoch["stages"]}
        table.row(batch, precision, where, rate([epoch["examples"] / epoch["seconds"]]),
                  *(busy.get(name, "–") for name in ("RE", "ST", "EL+JL")), (summary.get("bound") or summary["limiting_stage"]).split(":")[0], *traffic(summary))


def four(place):
    """The log as four identical files."""
    files = [place.directory / f"train-{i}.parquet" for i in range(4)]
    for file in files:
        if not file.exists():
            os.link(place.directory / "train.parquet", file)
    return list(map(str, files))


def traffic(summary):
    """The share of all passes' rows that were already on the device, the share copied there too late, the share of time
    in which training waited for rows, the time of a step, and the share of it in which the device was busy."""
    devices = summary.get("devices") or [{}]
    up, kept, late = (sum(d.get(key, 0) for d in devices) for key in ("rows_uploaded", "rows_kept", "rows_uploaded_late"))
    seconds = sum(epoch["seconds"] for epoch in summary["epochs"])
    waited = f"{devices[0].get('rows_wait_seconds', 0) / seconds:.0%}" if up else "–"
    steps = [f"{1e6 * devices[0]['step_seconds']:.0f}", f"{devices[0]['busy_fraction']:.0%}"] if devices[0].get("measured_steps") else ["–", "–"]
    return [*(f"{rows / (up + kept):.0%}" if up else "–" for rows in (kept, late)), waited, *steps]


def host(options, part):
    """Measures the reader and the pulls alone, by number of cores."""
    size, cores = Size(options.quick), len(os.sched_getaffinity(0))
    place = log_of(options, size.examples)
    request = {"job": str(sides.JOB), "examples": size.examples, "seconds": size.seconds, "set": sides.settings({
        **place.input("train", "parquet"), "data.train": four(place), "training.batch_size": size.batches[0]})}
    disk = options.dir / "ssd"
    print("Alone, on so many cores: thousands of examples a second from Parquet, thousands of rows a second that are pulled and released\n")
    table = Table("threads", "examples", "rows, table in memory", "rows, table on SSD, in its cache")
    for threads in part.in_time(sorted({min(n, cores) for n in (1, 2, 4, 8, 16)})):
        side = sides.Side(sides.on_cores(threads, [place.speed]))
        read = side.ask(op="read", **{**request, "examples": size.examples * min(threads, 4)})
        pull = {**request, "op": "pull", "examples": size.examples // 4}
        memory = side.ask(**pull)
        cached = side.ask(**pull, output=str(disk), cache_bytes=CACHE_BYTES)
        side.close()
        shutil.rmtree(disk)
        table.row(threads, rate([read["examples"] / read["seconds"]]), *(rate([a["rows"] / a["seconds"]]) for a in (memory, cached)))
