"""Compares the matrix products of package kernel with OpenBLAS and MKL.

    python compare.py                every shape, form and number of threads
    python compare.py --quick        a tenth of them, in about two minutes
    python compare.py --json         one JSON object a line

The first run makes a virtual environment with the packages of requirements.txt and
builds the Go program beside this file. The sides take several turns on each product.
A figure is the fastest call of a turn, in the median over the turns.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import environment  # noqa: E402

# The layers of the model zoo, as (inputs, outputs). Odd input sizes come from dense features, the pairs of a dot
# interaction, and concatenated embeddings.
LAYERS = [
    (13, 512), (512, 256), (256, 64), (64, 16),  # DLRM, bottom
    (367, 512), (415, 512), (351, 512), (512, 256), (256, 128),  # DLRM, top
    (429, 512), (429, 256), (429, 128), (845, 1024), (1024, 512), (128, 64),  # other towers
    (429, 429),  # a cross layer
    (27, 64), (16, 16), (27, 13), (1024, 1024),
]
BATCHES = [512, 2048, 16384]
FORMS = ["nn", "nt", "tn"]
THREADS = [1, 2]


def shapes(batch, inputs, outputs):
    """The products of a layer as (form, m, n, k): forward, input and weight gradients."""
    return [("nn", batch, outputs, inputs), ("nt", batch, inputs, outputs), ("tn", inputs, outputs, batch)]

class Side:
    """A process that times products."""

    def __init__(self, name, command, environment=None, settle=0.0):
        self.name = name
        self.settle = settle  # seconds until its idle threads stop spinning
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})})

    def ask(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"{self.name} ended while it worked on {request!r}")
        time.sleep(self.settle)
        return answer.strip()


def serve(name):
    """Times products by a library, as main.go does: the same requests, the same answers."""
    import ctypes
    import numpy

    site = pathlib.Path(numpy.__file__).parent.parent
    if name == "openblas":
        library = ctypes.CDLL(str(site / "scipy_openblas32/lib/libscipy_openblas.so"))
        sgemm, set_threads = library.scipy_cblas_sgemm, library.scipy_openblas_set_num_threads
        library.scipy_openblas_get_corename.restype = ctypes.c_char_p
        describe = lambda: library.scipy_openblas_get_corename().decode()
    else:
        found = sorted(pathlib.Path(sys.prefix).glob("lib/libmkl_rt.so*"))
        library = ctypes.CDLL(str(found[-1]))
        sgemm, set_threads = library.cblas_sgemm, library.MKL_Set_Num_Threads

        def describe():
            text = ctypes.create_string_buffer(200)
            library.MKL_Get_Version_String(text, 200)
            return " ".join(text.value.decode().split())

    pointer, i32, f32 = ctypes.c_void_p, ctypes.c_int, ctypes.c_float
    sgemm.argtypes = [i32] * 6 + [f32, pointer, i32, pointer, i32, f32, pointer, i32]
    sgemm.restype = None
    random = numpy.random.default_rng(1)

    def matrix(n):
        return random.standard_normal(n, dtype=numpy.float32)

    row_major, plain, transposed = 101, 111, 112
    for line in sys.stdin:
        request = line.split()
        if request == ["level"]:
            print(describe(), flush=True)
            continue
        form, (m, n, k, threads) = request[0], map(int, request[1:5])
        a, b, c = matrix(m * k), matrix(k * n), numpy.zeros(m * n, numpy.float32)
        set_threads(threads)
        arguments = (
            row_major, transposed if form[0] == "t" else plain, transposed if form[1] == "t" else plain,
            m, n, k, 1, a.ctypes.data, m if form[0] == "t" else k, b.ctypes.data, k if form[1] == "t" else n,
            0, c.ctypes.data, n)
        sgemm(*arguments)
        best, begin = float("inf"), time.perf_counter()
        while True:
            start = time.perf_counter()
            sgemm(*arguments)
            end = time.perf_counter()
            best = min(best, end - start)
            if end - begin >= float(request[5]):
                break
        print(best, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path.home() / ".cache/aibox/bench-gemm",
                        help="where the packages are installed (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer shapes and turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.add_argument("--turns", type=int, default=5, help="turns of each side (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=0.02, help="of work a turn (default: %(default)s)")
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS)
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--layers", nargs="+", help="inputs:outputs, such as 13:512")
    parser.add_argument("--serve", choices=["openblas", "mkl"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return

    python = environment.prepare(options.venv, HERE / "requirements.txt")
    binary = options.venv / "gemm"
    subprocess.run(["go", "build", "-o", binary, "."], cwd=HERE, check=True)
    script = [python, HERE / "compare.py", "--serve"]
    ours = Side("aibox", [binary])
    # Idle threads of OpenBLAS and MKL spin for a while and would disturb the next side.
    openblas = Side("openblas", script + ["openblas"], {"OPENBLAS_THREAD_TIMEOUT": "22"}, settle=0.003)
    mkl = Side("mkl", script + ["mkl"], {"KMP_BLOCKTIME": "1", "MKL_DYNAMIC": "FALSE"}, settle=0.003)
    sides = [ours, openblas, mkl]

    layers, batches = LAYERS, options.batches
    if options.layers:
        layers = [tuple(map(int, layer.split(":"))) for layer in options.layers]
    elif options.quick:
        layers, batches = [(13, 512), (512, 256), (415, 512), (64, 16)], [2048]
    peaks = {threads: float(ours.ask(f"peak {threads}")) for threads in options.threads}
    if not options.json:
        for side in sides:
            print(f"{side.name}: {side.ask('level')}")
        for threads, peak in peaks.items():
            print(f"peak of fused multiply-adds, {threads} threads: {peak:.0f} GFLOP/s")
        print()
        print("| form | m | n | k | threads | GFLOP/s | of peak | OpenBLAS | MKL | of the better |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    seen, ratios = set(), []
    for threads in options.threads:
        for batch in batches:
            for layer in layers:
                for form, m, n, k in shapes(batch, *layer):
                    if form not in options.forms or (form, m, n, k, threads) in seen:
                        continue
                    seen.add((form, m, n, k, threads))
                    times = {side.name: [] for side in sides}
                    for _ in range(options.turns):
                        for side in sides:
                            times[side.name].append(float(side.ask(f"{form} {m} {n} {k} {threads} {options.seconds}")))
                    rate = {name: 2e-9 * m * n * k / statistics.median(t) for name, t in times.items()}
                    ratio = rate["aibox"] / max(rate["openblas"], rate["mkl"])
                    share = rate["aibox"] / peaks[threads]
                    ratios.append(ratio)
                    if options.json:
                        print(json.dumps({"form": form, "m": m, "n": n, "k": k, "threads": threads, "gflops": rate,
                                          "of_peak": share, "of_better": ratio}), flush=True)
                    else:
                        print(f"| {form} | {m} | {n} | {k} | {threads} | {rate['aibox']:.1f} | {share:.2f} | "
                              f"{rate['openblas']:.1f} | {rate['mkl']:.1f} | {ratio:.2f} |", flush=True)
    if not options.json:
        low = sum(r < 0.97 for r in ratios)
        print(f"\n{len(ratios)} products: median ratio {statistics.median(ratios):.2f}, lowest {min(ratios):.2f}, "
              f"{low} below 0.97")


if __name__ == "__main__":
    main()
