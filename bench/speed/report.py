"""Tables of the samples, compared with the targets, as Markdown."""

import statistics

TARGETS = {"step": 1.4, "of_peak": 0.75, "job": 1.8, "bf16 job": 3.0, "text": 0.9, "table": 0.9, "learning": 0.92, "cores": 1.8}


class Samples:
    """Some samples, and queries over them."""

    def __init__(self, samples):
        self.all = samples

    def where(self, **wanted):
        return Samples([s for s in self.all if all(s.get(key) == value for key, value in wanted.items())])

    def values(self, key="examples_per_second"):
        """The values in the order of the turns."""
        return [s[key] for s in sorted(self.all, key=lambda s: s["turn"])]

    def median(self, key="examples_per_second"):
        return statistics.median(self.values(key))

    def distinct(self, *keys):
        """The combinations of these entries, in the order of their first sample."""
        return list(dict.fromkeys(tuple(s[key] for key in keys) for s in self.all))

    def better(self):
        """The faster side of PyTorch."""
        peers = [side for side in (self.where(side="eager"), self.where(side="compiled")) if side.all]
        return max(peers, key=Samples.median) if peers else Samples([])


def rate(samples):
    """The median and, in brackets, the lowest and the highest value, in thousands per second."""
    if not samples.all:
        return "–"
    values = [v / 1000 for v in samples.values()]
    return f"{statistics.median(values):.1f} ({min(values):.1f}–{max(values):.1f})"


def ratio(ours, theirs):
    """The median of the ratios of the turns."""
    if not ours.all or not theirs.all:
        return None
    return statistics.median(a / b for a, b in zip(ours.values(), theirs.values()))


def beside(value, target):
    """A value and its target."""
    return "–" if value is None else f"{value:.2f} of {target}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def steps(samples):
    rows = []
    for model, batch, precision in samples.distinct("model", "batch", "precision"):
        these = samples.where(model=model, batch=batch, precision=precision)
        ours = these.where(side="aibox")
        share = f"{ours.median('of_peak'):.2f}" if ours.all and precision == "float32" else "–"
        if model == "dlrm" and share != "–":
            share += f" of {TARGETS['of_peak']}"
        rows.append([model, batch, precision, rate(ours), rate(these.where(side="eager")),
                     rate(these.where(side="compiled")), beside(ratio(ours, these.better()), TARGETS["step"]), share])
    return "### A step with embeddings in memory, thousands of examples a second\n\n" + table(
        ["model", "batch", "precision", "aibox", "PyTorch eager", "compiled", "aibox / the better", "of the FMA peak"], rows)


def jobs(samples):
    rows = []
    for batch, precision in samples.distinct("batch", "precision"):
        these = samples.where(batch=batch, precision=precision)
        parquet, text = (these.where(side="aibox", input=input) for input in ("parquet", "text"))
        better = these.better()
        row = [batch, precision, rate(parquet), rate(text), rate(these.where(side="eager")),
               rate(these.where(side="compiled")), beside(ratio(parquet, better), TARGETS["job"]),
               beside(ratio(text, parquet), TARGETS["text"])]
        if precision == "bf16":
            row[6] = beside(ratio(parquet, samples.where(batch=batch, precision="float32").better()), TARGETS["bf16 job"])
        losses = [f"{s.median('log_loss'):.5f}" if s.all else "–" for s in (parquet, better)]
        rows.append(row + losses)
    return "### The whole job of DLRM, thousands of examples a second\n\n" + table(
        ["batch", "precision", "aibox, Parquet", "aibox, text", "PyTorch eager", "compiled",
         "Parquet / the better (bf16: / float32)", "text / Parquet", "log loss, aibox", "PyTorch"], rows)


def tables(samples):
    memory, ssd = samples.where(kind="memory"), samples.where(kind="ssd")
    cached = f"{ssd.median('cache_rows') / ssd.median('rows'):.3f}"
    row = [f"{ssd.median('rows'):,.0f}", cached, rate(memory), rate(ssd), beside(ratio(ssd, memory), TARGETS["table"])]
    row += [f"{memory.median('learning'):.3f}", beside(ssd.median("learning"), TARGETS["learning"])]
    return "### DLRM with the table on SSD and a cache for a tenth of its rows, thousands of examples a second\n\n" + table(
        ["rows", "of them in memory", "table in memory", "on SSD", "ratio", "EL+JL's share, in memory", "on SSD"], [row])


def cores(samples):
    rows = []
    for what, side in samples.distinct("what", "side"):
        one, two = (samples.where(what=what, side=side, cores=n) for n in (1, 2))
        rows.append([what, side, rate(one), rate(two), beside(ratio(two, one), TARGETS["cores"])])
    return "### One core and two, DLRM, mini-batches of 2,048, thousands of examples a second\n\n" + table(
        ["what", "side", "1 core", "2 cores", "ratio"], rows)


TABLES = {"step": steps, "job": jobs, "table": tables, "cores": cores}


def heading(machine, quick):
    """What the figures were measured on."""
    lines = [f"{machine['processor']}, {machine['cores']} cores, {' '.join(machine['instructions'])}; "
             f"aibox {machine['aibox']}; {' '.join(machine['packages'])}"]
    if quick:
        lines.append("The quick size: one model, mini-batches of 2,048, three turns, jobs of 49,152 examples from Parquet; "
                     "neither jobs of PyTorch nor its bf16 are compiled.")
    return "\n\n".join(lines) + "\n"


def write(samples):
    """All tables, as text."""
    samples = Samples(samples)
    return "\n".join(make(part) for level, make in TABLES.items() if (part := samples.where(level=level)).all)
