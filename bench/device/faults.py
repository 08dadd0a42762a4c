"""Jobs where the device has too little memory, and where no device is visible."""

import contextlib
import ctypes
import functools
import os
import pathlib
import subprocess

import jobs
from part import Engine, Table

# MiB that the other program leaves free: too little for a context, and then more, so that a later allocation fails.
SPARED = (64, 512, 576, 640, 704, 768, 1024)
EXIT = 5  # exit status of a job whose machine has too few resources


def faults(options, part):
    """Runs a job while another program has most of the device's memory, then with no device visible, then undisturbed.
    The first two must end with an error, unless the memory suffices. Afterwards the undisturbed job must make the same
    model as in another directory."""
    job = jobs.prepare(options, "generated", options.dir / "faults", 2_000)
    file, table = job.file("dlrm", 256), Table("what happens", "exit status", "says")
    tasks = [functools.partial(disturbed, options, part, table, job, file, embeddings) for embeddings in Engine(options).placements()]
    for failed in part.together(tasks, most=1):
        if failed:
            part.fail(str(failed))


def disturbed(options, part, table, job, file, embeddings):
    """Runs these jobs with embeddings in one place."""
    keys = {**Engine(options).keys(embeddings=embeddings), "output.model_dir": str(options.dir / "faults" / embeddings)}
    command = [options.aibox, "train", file, *job.flags(keys)]
    for spared in SPARED:
        with full_device(spared << 20):
            what = f"another program leaves {spared} MiB of the memory, embeddings: {embeddings}"
            if not fails(part, table, what, command, os.environ, may_succeed=spared > SPARED[0]):
                break
    fails(part, table, f"no device is visible, embeddings: {embeddings}", command, {**os.environ, "CUDA_VISIBLE_DEVICES": ""})
    job.run(*command[1:])
    digests = {jobs.summary_of(pathlib.Path(keys["output.model_dir"]))["digest"], job.train(file, keys)["digest"]}
    if len(digests) > 1:
        part.fail(f"embeddings: {embeddings}: the model is another one after errors")


def fails(part, table, what, command, environment, may_succeed=False):
    """Runs a command that should exit with EXIT, and returns whether it failed."""
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    lines = done.stdout.strip().splitlines() or [""]
    table.row(what, done.returncode, lines[-1].replace("|", "\\|"))
    if done.returncode != EXIT and not (may_succeed and done.returncode == 0):
        part.fail(f"{what}: the exit status is not {EXIT}\n{done.stdout}")
    return done.returncode != 0


@contextlib.contextmanager
def full_device(spared):
    """Allocates all free memory of the first device but the given bytes."""
    driver, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    free, total, memory = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()

    def call(name, *arguments):
        if code := getattr(driver, name)(*arguments):
            raise RuntimeError(f"{name}: error {code} of the driver")

    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        call("cuCtxPushCurrent_v2", context)
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(free.value - spared))
        yield
    finally:
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        call("cuDevicePrimaryCtxRelease_v2", device)  # frees the memory, too
