"""The time of each operation of a step on the device."""

import csv
import itertools

from part import Engine, Table, log_of
from steps import Size

ROWS = 30  # of a table


def operations(options, part):
    """The operations of DLRM, measured one by one, in each precision, with embeddings on the device: the longest, and the total."""
    size, engine = Size(options.quick), Engine(options)
    batch = size.batches[1]
    place = log_of(options, size.examples)
    for precision in part.in_time(sorted(engine.precisions(), key=["tf32", "bf16", "float32"].index)):
        profile = options.dir / f"profile-{precision}"
        keys = {**engine.keys(precision, embeddings="device" if "device" in engine.placements() else "host"), **place.input("train", "parquet"),
                "data.eval": [], "training.batch_size": batch, "snapshots.every": "none"}
        try:
            place.run("train", {**keys, "output.model_dir": str(options.dir / f"profiled-{precision}")}, more=["--profile", profile])
        except SystemExit as e:
            part.fail(f"{precision}: {e}")
            continue
        steps = size.examples // batch
        print(f"Operations of {steps} steps in {precision} with mini-batches of {batch}, microseconds:\n")
        table = Table("operation", "for each step", "mean", "for all of a step", "GB/s")
        try:
            with open(profile / "kernels.tsv", newline="") as file:
                found = list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))
        except FileNotFoundError:  # the CPU has none
            found = []
        for row in itertools.islice(found, ROWS):
            table.row(row["operation"], f"{int(row['calls']) / steps:.1f}", row["mean_us"], f"{1e3 * float(row['total_ms']) / steps:.1f}", row["gb_per_s"])
        table.row("all", f"{sum(int(row['calls']) for row in found) / steps:.0f}", "", f"{1e3 * sum(float(row['total_ms']) for row in found) / steps:.0f}", "")
        print()
