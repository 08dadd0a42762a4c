#!/usr/bin/env python3
"""Measures how fast a published model is restored, compared with the speed of the disk.

Two programs take --pairs turns: dd copies the files of the remote directory, four at a
time, bypassing the page cache, until they are durable; `aibox restore` restores its newest
model. Both use the same disks, and none of the directory's files is in the page cache.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time


def forget(files):
    """Evicts files from the page cache."""
    subprocess.run(["sync"], check=True)
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def timed(action, *words):
    start = time.time()
    action(*words)
    return time.time() - start


def copy(files, to):
    def dd(path):
        subprocess.run(["dd", f"if={path}", f"of={to / path.name}", "bs=8M", "iflag=direct", "oflag=direct", "conv=fdatasync"], check=True, capture_output=True)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(dd, files))


def restore(binary, remote, to):
    process = subprocess.run([binary, "restore", "--from", remote, "--to", to, "--json"], capture_output=True, text=True)
    if process.returncode:
        sys.exit(process.stderr[-2000:])
    return json.loads(process.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--aibox", nargs="+", default=["bin/aibox"], help="binaries to compare (default: bin/aibox)")
    p.add_argument("--remote", type=pathlib.Path, required=True, help="directory with a published model (output.remote without file://)")
    p.add_argument("--dir", type=pathlib.Path, default=pathlib.Path("bench-restore"), help="where it is restored to, on the disk that is measured")
    p.add_argument("--pairs", type=int, default=3)
    args = p.parse_args()
    files = sorted((args.remote / "objects").iterdir())
    total = sum(f.stat().st_size for f in files)
    print(f"{total / 1e9:.2f} GB in {len(files)} objects", flush=True)
    runs = {}
    for _ in range(args.pairs):
        for name in ["dd", *args.aibox]:
            forget(files)
            args.dir.mkdir(parents=True)
            if name == "dd":
                seconds = timed(copy, files, args.dir)
            else:
                seconds = timed(restore, name, args.remote, args.dir / "model")
            shutil.rmtree(args.dir)
            runs.setdefault(name, []).append(seconds)
            print(f"{name:>12}  {seconds:6.1f} s  {total / 1e6 / seconds:6.0f} MB/s", flush=True)
    for name, seconds in runs.items():
        middle = statistics.median(seconds)
        print(f"median {name:>12}  {middle:6.1f} s  {total / 1e6 / middle:6.0f} MB/s", flush=True)


if __name__ == "__main__":
    main()
