"""Writes the data sets as train, test, fit and valid files that both sides read.

    python prepare.py --out DIR --criteo day_0.10k.tsv \\
        --movielens ml-latest-small/ --insteval InstEval.csv --generated log.tsv

Each flag is optional; sets.py says what the files hold.
"""

import argparse
import csv
import pathlib
import random


def criteo(path):
    """Raw Criteo lines, in the order of the log: first 80 % train."""
    with open(path, encoding="utf-8") as f:
        return None, f.read().splitlines()


def movielens(directory):
    """Ratings joined with the genres of their movie, ordered by time."""
    directory = pathlib.Path(directory)
    with open(directory / "movies.csv", newline="", encoding="utf-8") as f:
        genres = {m["movieId"]: m["genres"] for m in csv.DictReader(f)}
    with open(directory / "ratings.csv", newline="", encoding="utf-8") as f:
        ratings = list(csv.DictReader(f))
    ratings.sort(key=lambda r: (int(r["timestamp"]), int(r["userId"]), int(r["movieId"])))
    lines = [
        "\t".join((r["userId"], r["movieId"], genres[r["movieId"]], r["rating"], r["timestamp"]))
        for r in ratings
    ]
    return "userId\tmovieId\tgenres\trating\ttimestamp", lines


def insteval(path):
    """Lecture ratings, shuffled with a fixed seed: the file has no order in time."""
    with open(path, encoding="utf-8") as f:
        header, *lines = f.read().replace(",", "\t").splitlines()
    random.Random(1).shuffle(lines)
    return header, lines


def generated(path):
    """What `aibox generate generated.yaml` wrote: examples are independent draws."""
    with open(path, encoding="utf-8") as f:
        header, *lines = f.read().splitlines()
    return header, lines


READERS = {"criteo": criteo, "movielens": movielens, "insteval": insteval, "generated": generated}


def write(path, header, lines):
    with open(path, "w", encoding="utf-8") as f:
        for line in ([header] if header else []) + lines:
            f.write(line + "\n")


def split(lines, share):
    """Cuts off the last `share` of the lines."""
    cut = len(lines) - round(len(lines) * share)
    return lines[:cut], lines[cut:]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", required=True, type=pathlib.Path, help="directory to write to")
    parser.add_argument("--criteo", help="a file of raw Criteo lines")
    parser.add_argument("--movielens", help="the directory with ratings.csv and movies.csv")
    parser.add_argument("--insteval", help="InstEval.csv")
    parser.add_argument("--generated", help="what `aibox generate generated.yaml` wrote")
    args = parser.parse_args()
    for name, reader in READERS.items():
        source = getattr(args, name)
        if source is None:
            continue
        header, lines = reader(source)
        train, test = split(lines, 0.2)
        fit, valid = split(train, 0.1)
        directory = args.out / name
        directory.mkdir(parents=True, exist_ok=True)
        for part, part_lines in {"train": train, "test": test, "fit": fit, "valid": valid}.items():
            write(directory / f"{part}.tsv", header, part_lines)
        print(f"{name}: {len(train)} train ({len(fit)} fit, {len(valid)} valid), {len(test)} test")


if __name__ == "__main__":
    main()
