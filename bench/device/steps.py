"""A step of DLRM, compared with PyTorch on the same card in the same run, and with the limits of the card."""

import json
import statistics
import subprocess

from part import Engine, Table, log_of, rate, sides

import models  # of bench/speed, which part makes known

# Kinds of steps of aibox, and the place of embeddings. A pass copies its rows to the device and back, but PyTorch keeps
# all rows on the device. So PyTorch is compared with steps on rows that stay: aibox begins one pass and trains on its
# mini-batches repeatedly. The last kind runs the operations of graphs one after the other, to measure the gain of
# lanes.
STAY, CHAIN = "device, rows stay", "the same, without lanes"
KINDS = {"host": "host", "device": "device", STAY: "device", CHAIN: "device"}
STEPS = 1 << 12  # about how many a pass has if rows stay and mini-batches are small
GOALS = "Goals: with embeddings on the device, 2 times the best of PyTorch; with embeddings on the host, 1,000 thousand a second."
VARIANTS = ["eager", "compiled", "graph", "compiled graph"]  # see torch_cuda.py


class Size:
    """How much is measured."""

    def __init__(self, quick):
        self.batches = [32, 64, 128] if quick else [4096, 16384, 65536]
        self.examples = 512 if quick else 1 << 20  # of the log; a step of each size is taken on at most 16 mini-batches
        self.seconds, self.turns = (0.05, 1) if quick else (0.4, 2)
        self.limits = {"bytes": 1 << 20, "matrix": 64} if quick else {"bytes": 1 << 31, "matrix": 8192}

    def of(self, batch):
        """How many examples to use for mini-batches of that size."""
        return min(16 * batch, self.examples)


class Torch:
    """PyTorch, in a process that is restarted after an error, since that may have left the device unusable."""

    def __init__(self, options, place, part):
        self.command = [options.python, sides.HERE / "torch_cuda.py", "--data", place.for_torch(), "--device", options.engine]
        self.part, self.side, self.bad = part, None, set()

    def compile(self, requests):
        """Takes a step of each kind, all concurrently, to fill PyTorch's cache of compiled code. Errors are ignored: they
        recur in the measurement."""
        running = [sides.Side(list(map(str, self.command))) for _ in requests]
        for side, request in zip(running, requests):
            side.process.stdin.write(json.dumps(request) + "\n")
            side.process.stdin.close()
        for side in running:
            side.process.stdout.read()
            side.process.wait()

    def ask(self, **request):
        """An answer, or None after a failure, which is reported once."""
        name = " ".join(str(request[key]) for key in ("op", "variant", "batch", "precision") if key in request)
        if name in self.bad:
            return None
        try:
            self.side = self.side or sides.Side(list(map(str, self.command)))
            answer = self.side.ask(**request)
        except (SystemExit, OSError) as e:
            answer = {"error": str(e)}
        if "error" not in answer:
            return answer
        self.side = None
        self.bad.add(name)
        self.part.fail(f"PyTorch, {name}: {answer['error']}")
        return None


def has_torch(python):
    """Whether that Python has PyTorch. It is not imported, which would take seconds."""
    return subprocess.run([python, "-c", "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torch'))"]).returncode == 0


def speed(options, part):
    size, engine = Size(options.quick), Engine(options)
    place = log_of(options, size.examples)
    torch = None
    if not options.no_torch:
        if has_torch(options.python):
            torch = Torch(options, place, part)
        else:
            part.skip(f"PyTorch: {options.python} does not have it")
    version = torch and torch.ask(op="version")
    if torch and not version:
        torch = None
    limits = torch and torch.ask(op="limits", **size.limits)
    if limits:
        print("PyTorch " + ", ".join(version.values()) + "\n")
        table = Table("limit", "measured")
        for name, words in (("copy", "copies on the device, read and written, GB/s"), ("up", "copies to the device, GB/s"),
                            ("down", "copies from the device, GB/s")):
            table.row(words, f"{limits[name] / 1e9:,.1f}")
        for precision in ("float32", "tf32", "bf16"):
            table.row(f"products of {size.limits['matrix']}³ in {precision}, TFLOP/s", f"{limits[precision] / 1e12:,.1f}")
    print(f"\nA step of DLRM, thousands of examples a second, by where the embeddings are. {GOALS} Limits are for the same figures: products of the "
          "network at the measured rate, the device's memory at the measured bandwidth, and the copies between host and device.\n")
    kinds = [kind for kind, where in KINDS.items() if where in engine.placements()]
    ours = {side: sides.Side([str(place.speed)]) for side in map(side_of, kinds)}  # a process keeps the mini-batches of a job that it has opened
    table = Table("batch", "precision", *(f"aibox, {kind}" for kind in kinds), *(f"PyTorch, {v}" for v in VARIANTS),
                  "aibox, rows stay / best PyTorch", "device busy, rows stay", "limit of products", "of memory", "of copies (host)")
    cases = spread(size.batches, engine.precisions())
    if torch:
        torch.compile([torch_request(size, *case, "compiled", 0.001) for case in cases])
    for batch, precision in part.in_time(cases):
        found, busy = {name: [] for name in kinds + VARIANTS}, "–"
        for _ in range(size.turns):
            for kind in kinds:
                where, stay, chain = KINDS[kind], kind in (STAY, CHAIN), kind == CHAIN
                rounds = max(32, STEPS * size.batches[0] // batch // 16) if stay and not options.quick else 2 if stay else 1
                keys = {**engine.keys(precision, embeddings=where), **place.input("train", "parquet"), "training.batch_size": batch}
                answer = ask(ours, side_of(kind), part, op="step", examples=size.of(batch), seconds=size.seconds, rounds=rounds, chain=chain,
                             job=str(sides.JOB), set=sides.settings(keys))
                add(found[kind], answer)
                if kind == STAY and answer and "busy" in answer:
                    busy = f"{answer['busy']:.0%}"
            for variant in VARIANTS if torch else []:
                add(found[variant], torch.ask(**torch_request(size, batch, precision, variant, size.seconds)))
        best = max((statistics.median(found[v]) for v in VARIANTS if found[v]), default=None)
        staying = found.get(STAY)
        ratio = f"{statistics.median(staying) / best:.2f} of 2" if staying and best else "–"
        table.row(batch, precision, *(rate(values) for values in found.values()), ratio, busy, *bounds(limits, precision))
    for side in ours.values():
        side.close()


def torch_request(size, batch, precision, variant, seconds):
    """Steps of PyTorch."""
    return {"op": "step", "examples": size.of(batch), "seconds": seconds, "batch": batch, "precision": precision, "variant": variant,
            "dense_rate": sides.DENSE_RATE, "row_rate": sides.ROW_RATE}


def spread(batches, precisions):
    """All pairs, in the order of importance in case time runs out: first those for which docs/gpu.md lacks figures with PyTorch in the same run."""
    return sorted(((b, p) for b in batches for p in precisions), key=lambda pair: (batches.index(pair[0]) - precisions.index(pair[1]) - 1) % len(batches))


def side_of(kind):
    """The process that takes steps of a kind."""
    return "without lanes" if kind == CHAIN else KINDS[kind]


def ask(ours, side, part, **request):
    """An answer of aibox. After a failure, a new process continues."""
    try:
        return ours[side].ask(**request)
    except SystemExit as e:
        part.fail(f"aibox, {side}: {e}")
        ours[side] = sides.Side(ours[side].command)


def add(values, answer):
    if answer:
        values.append(answer["examples"] / answer["seconds"])


def bounds(limits, precision):
    """The most examples per second that the measured rates allow."""
    if not limits:
        return ["–"] * 3
    up, down = models.crossing_bytes()
    return [rate([limits[precision] / (2 * models.multiply_adds("dlrm"))]), rate([limits["copy"] / models.moved_bytes()]),
            rate([min(limits["up"] / up, limits["down"] / down)])]
