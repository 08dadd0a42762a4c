"""Jobs of aibox with the settings and the data of the comparison."""

import json
import os
import shutil
import subprocess
import sys

import yaml

import sets


def job(name, model, settings, seed, directory, examples):
    """The job file of one run over that many training examples."""
    columns = sets.SCHEMAS[name]["columns"]
    dense_columns = [c["name"] for c in columns if c["role"] == "dense"]
    network = {"kind": model, "initial_bias": 0}  # as near to PyTorch's as it can be
    if model != "lr":
        network["embedding_dim"] = settings["embedding_dim"]
    if model == "aibox":
        network["towers"] = towers(settings, dense_columns)
        network["embedding_activation"] = "relu"  # as zoo_torch.AIBox has it
    elif model not in ("lr", "fm"):
        network["hidden_layers"] = settings["hidden_layers"]
    if model == "dlrm" and dense_columns:
        network["bottom_layers"] = settings["bottom_layers"]
    if model in ("dcn", "dcn_v2"):
        network["cross_layers"] = settings["cross_layers"]
        network["structure"] = "parallel"
    adam = {key: settings[key] for key in ("beta1", "beta2", "epsilon")}
    adagrad = {key: settings[key] for key in ("epsilon", "initial_accumulator")}
    kind = settings["row_optimizer"]
    return {
        "name": f"{name}-{model}-{seed}",
        "seed": seed,
        "data": {
            "train": [str(directory / "train.tsv")],
            "shuffle_buffer": examples,
            **sets.SCHEMAS[name],
        },
        "model": network,
        "optimizer": {
            "dense": {"kind": "adam", "learning_rate": settings["dense_learning_rate"], **adam},
            "rows": {
                "kind": kind,
                "learning_rate": settings["row_learning_rate"],
                "l2": settings["row_l2"],
                **(adam if kind == "adam" else adagrad),
            },
        },
        "training": {"batch_size": settings["batch_size"], "epochs": settings["epochs"]},
        "sparse_table": {"kind": "memory", "init_stddev": settings["init_stddev"]},
    }


def towers(settings, dense_columns):
    """Consecutive slices of the dense columns, as zoo_torch.AIBox takes them."""
    out, start = [], 0
    for i, width in enumerate(settings["tower_dense"]):
        own = dense_columns[start : start + width]
        out.append({"name": f"tower{i}", "layers": settings["hidden_layers"]})
        if own:
            out[-1]["dense"] = own
        start += width
    return out


def run(binary, contents, test_file, work, threads):
    """Trains and evaluates one job; (AUC, log loss) on test_file."""
    path = work / f"{contents['name']}.yaml"
    model_dir = work / contents["name"]
    shutil.rmtree(model_dir, ignore_errors=True)
    contents = {**contents, "output": {"model_dir": str(model_dir), "tensorboard": "none"}}
    path.write_text(yaml.safe_dump(contents, sort_keys=False), encoding="utf-8")

    def command(*args):
        env = {**os.environ, "GOMAXPROCS": str(threads)}
        done = subprocess.run([binary, *args], env=env, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{binary} {' '.join(args)}: exit code {done.returncode}\n{done.stderr}")
        return done.stdout

    command("train", str(path))
    report = json.loads(
        command("eval", "--model-dir", str(model_dir), "--data", str(test_file), "--json")
    )
    shutil.rmtree(model_dir)
    return report["metrics"]["auc"], report["metrics"]["log_loss"]
