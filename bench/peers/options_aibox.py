"""Compares each of several options of aibox with no option, at the settings that usual.py has chosen for aibox.

    python options_aibox.py --data DIR --fresh DIR2 --models lr deepfm --options averaging=0.98 averaging=0.995

As in options.py, the data are not those of usual.py's tables: generated sets are those of prepare.py with --seed 2 in
DIR2; on the others, models train on fit.tsv and are measured on valid.tsv. Differences are of pairs of runs with the
same seed. Results are kept in DIR2/options_aibox.jsonl; runs with a result there are not repeated.

An option is a comma-separated list of settings of a job file. Names without a dot are settings of optimizer.dense.
"""

import argparse
import pathlib
import tempfile

import yaml

import options
import sets
import usual
import usual_report
import zoo_torch


def overrides(option):
    """The settings of an option, by their paths."""
    found = {}
    for setting in option.split(","):
        path, _, value = setting.partition("=")
        found[path if "." in path else f"optimizer.dense.{path}"] = yaml.safe_load(value)
    return found


def parts(args, name):
    """The directory of the set, and the files to train and to measure on."""
    if name in sets.generators():
        return args.fresh, "train", "test"
    return args.data, "fit", "valid"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--fresh", required=True, type=pathlib.Path)
    parser.add_argument("--aibox", default="../../bin/aibox")
    parser.add_argument("--sets", nargs="+", default=list(sets.SCHEMAS), choices=sets.SCHEMAS)
    parser.add_argument("--models", nargs="+", required=True, choices=zoo_torch.MODELS)
    parser.add_argument("--options", nargs="+", required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(1, 11)))
    args = parser.parse_args()
    settings = sets.load_settings("settings.yaml")
    chosen = usual.Results(args.data / "usual.jsonl")
    results = usual.Results(args.fresh / "options_aibox.jsonl")
    with tempfile.TemporaryDirectory() as work:
        args.work = pathlib.Path(work)
        for model in args.models:
            differences = {}
            for name in args.sets:
                try:
                    choice, _ = usual.tuned(chosen, name, model, "aibox", lambda _: usual_report.missing)
                except usual_report.Missing:
                    continue
                base = {**sets.base_settings(settings, name), **choice}
                base.pop("averaging", None)  # an option that may be tried here
                directory, first, second = parts(args, name)
                for seed in args.seeds:
                    plain = None
                    for option in ["", *args.options]:

                        def compute(option=option, seed=seed, base=base, name=name, model=model):
                            own = argparse.Namespace(**{**vars(args), "data": directory})
                            job = {**base, "overrides": overrides(option) if option else {}}
                            return usual.train_aibox(own, name, model, job, seed, first, second)[-1]

                        auc, loss = results.get([name, model, choice, option, seed], compute)
                        plain = plain or (auc, loss)
                        if option:
                            pairs = differences.setdefault(option, {}).setdefault(name, [])
                            pairs.append((auc - plain[0], loss - plain[1]))
                by_set(name, model, differences)
            options.table(model, differences)


def by_set(name, model, differences):
    for option, found in differences.items():
        print(options.line([name, model, option], found[name]), flush=True)


if __name__ == "__main__":
    main()
