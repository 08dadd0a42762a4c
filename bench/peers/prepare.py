"""Writes the data sets as train, test, fit and valid files that both sides read.

    python prepare.py --out DIR --criteo day_0.10k.tsv \\
        --movielens ml-latest-small/ --insteval InstEval.csv --generated log.tsv \\
        --draw ../../bin/aibox

Each flag is optional; sets.py says what the files hold. --draw has aibox draw the sets of
../defaults/sets.json, with as many examples as settings.yaml says.
"""

import argparse
import csv
import pathlib
import random
import subprocess

import yaml

import sets


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


def draw(binary, name, section, size, seed, out):
    """Has aibox draw a set; its train.tsv is a log in the order of time, and test.tsv is of the last day."""
    directory = out.resolve() / name
    directory.mkdir(parents=True, exist_ok=True)
    train, test, job = (directory / f for f in ("train.tsv", "test.tsv", "draw.yaml"))
    contents = {
        "seed": seed,
        "data": {"train": [str(train)], "eval": [str(test)], "format": "tsv"},
        "model": {"kind": "lr"},
        "output": {"model_dir": str(directory / "model")},
        "generate": {**section, "train_examples": size["train"], "eval_examples": size["test"]},
    }
    job.write_text(yaml.safe_dump(contents), encoding="utf-8")
    subprocess.run([binary, "generate", job], check=True, stdout=subprocess.DEVNULL)
    return [generated(path) for path in (train, test)]


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
    parser.add_argument("--draw", metavar="BINARY", help="the aibox that draws the other generated sets")
    parser.add_argument("--seed", type=int, default=1, help="of what --draw draws, and of its true model")
    args = parser.parse_args()
    settings = sets.load_settings(sets.HERE / "settings.yaml")["sets"]
    for name, reader in READERS.items():
        source = getattr(args, name)
        if source is not None:
            header, lines = reader(source)
            train, test = split(lines, 0.2)
            save(args.out, name, settings[name], header, train, test)
    if args.draw:
        for name, section in sets.generators().items():
            if "examples" in settings[name]:
                size = settings[name]["examples"]
                (header, train), (_, test) = draw(args.draw, name, section, size, args.seed, args.out)
                save(args.out, name, settings[name], header, train, test)


def save(out, name, settings, header, train, test):
    """Writes the four files of a set."""
    fit, valid = split(train, settings["validation_share"])
    directory = out / name
    directory.mkdir(parents=True, exist_ok=True)
    for part, lines in {"train": train, "test": test, "fit": fit, "valid": valid}.items():
        write(directory / f"{part}.tsv", header, lines)
    print(f"{name}: {len(train)} train ({len(fit)} fit, {len(valid)} valid), {len(test)} test")


if __name__ == "__main__":
    main()
