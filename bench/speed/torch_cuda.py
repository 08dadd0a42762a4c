"""PyTorch's side of the comparison on an NVIDIA device.

    python torch_cuda.py --data DIR [--device cpu]     answers requests, one JSON object a line

DIR holds the binary files that the Go program of this directory writes. Mini-batches are in pinned host memory;
the next one is copied to the device while the device works on the current one. All rows are on the device. The
variants of a step, all of them with SGD:

    eager           EmbeddingBag with sparse gradients, the obvious way
    compiled        the same, with the network and its loss compiled by torch.compile
    graph           the whole step in a CUDA graph. Sparse gradients cannot be captured: the gradients of
                    the rows of the mini-batch are added to the table by index_add_, which is the same step
    compiled graph  the same, with the network and its loss compiled

On the CPU, which is for tests of this program, the graph variants take their steps without a graph.
"""

import argparse
import contextlib
import json
import pathlib
import sys
import time

import torch
from torch.nn import functional

import models
import torch_side

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
import zoo_torch  # noqa: E402

VARIANTS = {"eager": (False, False), "compiled": (True, False), "graph": (False, True), "compiled graph": (True, True)}
PRECISIONS = {"float32": "highest", "tf32": "high", "bf16": "highest"}  # of products that are not in bf16


class DLRM(zoo_torch.DLRM):
    """The same network, with its pairs selected by index_select: the gradient of indexing by two arrays would sort them."""

    def __init__(self, device):
        super().__init__(models.FIELDS, models.DENSE, models.SETTINGS)
        vectors = models.FIELDS + 1
        self.register_buffer("flat_pairs", self.pairs[0] * vectors + self.pairs[1], persistent=False)
        self.to(device)

    def forward(self, rows, dense):
        x = self.bottom(dense)
        vectors = torch.cat([x.unsqueeze(1), rows], 1)
        dots = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([x, dots.index_select(1, self.flat_pairs)], 1)).squeeze(1)


class Feeder:
    """Mini-batches on the device, each copied while the device works on the previous one."""

    def __init__(self, batches, device):
        self.device, self.cuda = device, device.type == "cuda"
        self.host = [(ids.int(), dense.clone(), labels.clone()) for ids, dense, labels in batches]
        if self.cuda:
            self.host = [tuple(part.pin_memory() for part in batch) for batch in self.host]
            self.copies = torch.cuda.Stream()
            self.filled, self.free = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))
        self.slots = [tuple(torch.empty_like(part, device=device) for part in self.host[0]) for _ in range(2)]
        self.asked = self.given = 0
        self.ask()

    def ask(self):
        """Starts copying the next mini-batch into the slot of the last but one."""
        slot, batch = self.asked % 2, self.host[self.asked % len(self.host)]
        with torch.cuda.stream(self.copies) if self.cuda else contextlib.nullcontext():
            if self.cuda:
                self.copies.wait_event(self.free[slot])
            for to, part in zip(self.slots[slot], batch):
                to.copy_(part, non_blocking=True)
            if self.cuda:
                self.filled[slot].record()
        self.asked += 1

    def step(self, training):
        """Takes a step on the next mini-batch."""
        slot = self.given % 2
        self.ask()
        if self.cuda:
            torch.cuda.current_stream().wait_event(self.filled[slot])
        loss = training.step(slot)
        if self.cuda:
            self.free[slot].record()
        self.given += 1
        return loss


class Network:
    """DLRM with its loss, optionally compiled, on rows and on mini-batches of one size."""

    def __init__(self, table, precision, device, rates):
        self.table, self.device, self.rates = table, device, rates
        self.bf16 = precision == "bf16"
        torch.manual_seed(1)
        self.net = DLRM(device)
        self.dense = torch.optim.SGD(self.net.parameters(), lr=rates["dense_rate"], fused=True)
        self.compiled = torch.compile(self.loss, dynamic=False)

    def loss(self, rows, dense, labels):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bf16):
            logits = self.net(rows, dense)
        return functional.binary_cross_entropy_with_logits(logits.float(), labels)


class Training:
    """One variant of a step, on the mini-batches that a feeder has in its slots."""

    def __init__(self, network, variant, feeder):
        compiled, graph = VARIANTS[variant]
        self.network, self.slots = network, feeder.slots
        self.loss = network.compiled if compiled else network.loss
        self.bag = torch.nn.EmbeddingBag(torch_side.ROWS, models.DIM, mode="sum", sparse=True, _weight=network.table)
        self.sparse = torch.optim.SGD(self.bag.parameters(), lr=network.rates["row_rate"])
        self.takes = self.in_place if graph else self.with_sparse_gradients
        self.graphs = []
        if graph and network.device.type == "cuda":
            self.capture()

    def with_sparse_gradients(self, ids, dense, labels):
        for optimizer in (self.network.dense, self.sparse):
            optimizer.zero_grad()
        # Each value is a bag, since a field has one.
        rows = self.bag(ids.long().view(-1, 1)).view(len(ids), models.FIELDS, models.DIM)
        loss = self.loss(rows, dense, labels)
        loss.backward()
        for optimizer in (self.network.dense, self.sparse):
            optimizer.step()
        return loss.detach()

    def in_place(self, ids, dense, labels):
        self.network.dense.zero_grad()
        table, flat = self.network.table.detach(), ids.long().flatten()
        rows = table.index_select(0, flat).view(len(ids), models.FIELDS, models.DIM).requires_grad_()
        loss = self.loss(rows, dense, labels)
        loss.backward()
        table.index_add_(0, flat, rows.grad.view(-1, models.DIM), alpha=-self.network.rates["row_rate"])
        self.network.dense.step()
        return loss.detach()

    def capture(self):
        """Makes a graph for each slot."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # as PyTorch's documentation asks: state that is created at first use must not be captured
            for _ in range(3):
                self.takes(*self.slots[0])
        torch.cuda.current_stream().wait_stream(side)
        pool = None
        for slot in self.slots:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                loss = self.takes(*slot)
            pool = graph.pool()
            self.graphs.append((graph, loss))

    def step(self, slot):
        if not self.graphs:
            return self.takes(*self.slots[slot])
        graph, loss = self.graphs[slot]
        graph.replay()
        return loss


class Server:
    def __init__(self, options):
        self.device = torch.device(options.device)
        self.log = torch_side.Log(options.data, "train")
        memory = torch.empty(torch_side.ROWS, models.DIM, device=self.device).normal_(0, torch_side.INIT_STDDEV)
        self.table = torch.nn.Parameter(memory)
        self.key, self.feeder, self.network, self.trainings = None, None, None, {}

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def step(self, r):
        """Takes steps for a time, at least one on each mini-batch."""
        torch.set_float32_matmul_precision(PRECISIONS[r["precision"]])
        key = r["batch"], r["precision"]
        if key != self.key:
            self.trainings, self.network, self.feeder = {}, None, None
            torch.compiler.reset()  # else further sizes would be compiled as dynamic shapes
            rates = {name: r[name] for name in ("dense_rate", "row_rate")}
            self.network, self.key = Network(self.table, r["precision"], self.device, rates), key
            self.feeder = Feeder(list(self.log.batches(r["batch"], r["examples"])), self.device)
        if r["variant"] not in self.trainings:
            self.synchronize()
            training = self.trainings[r["variant"]] = Training(self.network, r["variant"], self.feeder)
            for _ in range(3):  # which compiles
                self.feeder.step(training)
        training, n = self.trainings[r["variant"]], len(self.feeder.host)
        self.synchronize()
        steps, begin = 0, time.perf_counter()
        while (spent := time.perf_counter() - begin) < r["seconds"]:
            for _ in range(n):
                loss = self.feeder.step(training)
            self.synchronize()
            steps += n
        return {"examples": steps * r["batch"], "seconds": spent, "loss": loss.item()}

    def limits(self, r):
        """The limits of the device: bytes and operations per second, the best of three."""
        n = r["bytes"] // 4
        one, other = torch.zeros(n, device=self.device), torch.zeros(n, device=self.device)
        host = torch.zeros(n, pin_memory=self.device.type == "cuda")
        found = {
            "copy": 8 * n / self.best(lambda: one.copy_(other)),  # bytes read and written
            "up": 4 * n / self.best(lambda: one.copy_(host, non_blocking=True)),
            "down": 4 * n / self.best(lambda: host.copy_(one, non_blocking=True)),
        }
        del one, other, host
        size = r["matrix"]
        for precision, how in PRECISIONS.items():
            torch.set_float32_matmul_precision(how)
            kind = torch.bfloat16 if precision == "bf16" else torch.float32
            a, b = (torch.randn(size, size, device=self.device, dtype=kind) for _ in range(2))
            found[precision] = 2 * size**3 / self.best(lambda: torch.matmul(a, b))
        return found

    def best(self, call, repeated=4):
        """Seconds of a call."""
        call()
        times = []
        for _ in range(3):
            self.synchronize()
            begin = time.perf_counter()
            for _ in range(repeated):
                call()
            self.synchronize()
            times.append((time.perf_counter() - begin) / repeated)
        return min(times)

    def serve(self):
        for line in sys.stdin:
            r = json.loads(line)
            if r["op"] == "version":
                answer = {"version": torch.__version__, "cuda": torch.version.cuda}
                if self.device.type == "cuda":
                    answer["device"] = torch.cuda.get_device_name()
            else:
                try:
                    answer = {"step": self.step, "limits": self.limits}[r["op"]](r)
                except Exception as e:  # the other variants may work in a new process
                    print(json.dumps({"error": f"{type(e).__name__}: {e}"}), flush=True)
                    return
            print(json.dumps(answer), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--device", default="cuda", help="(default: %(default)s)")
    Server(parser.parse_args()).serve()


if __name__ == "__main__":
    main()
