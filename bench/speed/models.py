"""The networks of the comparison, for both sides."""

DENSE, FIELDS, DIM = 13, 26, 16
BOTTOM, HIDDEN, CROSS_LAYERS = [512, 256, 64, DIM], [512, 256], 3
TOWERS = {"first": [f"I{i}" for i in range(1, 8)], "second": [f"I{i}" for i in range(8, 14)]}

# The section `model` of the job file, without kind and embedding_dim.
SECTIONS = {
    "dlrm": {"bottom_layers": BOTTOM, "hidden_layers": HIDDEN},
    "aibox": {"towers": [{"name": name, "dense": columns, "layers": HIDDEN} for name, columns in TOWERS.items()]},
    "dcn_v2": {"cross_layers": CROSS_LAYERS, "hidden_layers": HIDDEN},
    "deepfm": {"hidden_layers": HIDDEN},
    "wide_deep": {"hidden_layers": HIDDEN},
}

# The same as settings of the classes in ../peers/zoo_torch.py.
SETTINGS = {
    "embedding_dim": DIM,
    "bottom_layers": BOTTOM,
    "hidden_layers": HIDDEN,
    "cross_layers": CROSS_LAYERS,
    "tower_dense": [len(columns) for columns in TOWERS.values()],
}


def section(model):
    """The section `model` of the job file that trains the model."""
    return {"kind": model, "embedding_dim": DIM, **SECTIONS[model]}


def multiply_adds(model):
    """Multiply-adds of the matrix products of one example in a training step.

    A layer has three products: its output, the gradient of its weights, and the gradient of its
    input, except in the first layer of DLRM's bottom network. The products of DLRM's interaction
    do not count.
    """
    inputs = FIELDS * DIM + DENSE
    if model == "dlrm":
        vectors = FIELDS + 1
        pairs = vectors * (vectors - 1) // 2
        return 3 * (layers(DENSE, *BOTTOM) + layers(DIM + pairs, *HIDDEN, 1)) - DENSE * BOTTOM[0]
    if model == "aibox":
        total, handed_on = 0, 0
        for columns in TOWERS.values():
            total += layers(FIELDS * DIM + len(columns) + handed_on, *HIDDEN)
            handed_on = HIDDEN[0] + HIDDEN[-1]
        return 3 * (total + len(TOWERS) * HIDDEN[-1])
    deep = layers(inputs, *HIDDEN)
    if model == "dcn_v2":
        return 3 * (CROSS_LAYERS * inputs * inputs + deep + inputs + HIDDEN[-1])
    return 3 * (deep + HIDDEN[-1])


def layers(*sizes):
    return sum(a * b for a, b in zip(sizes, sizes[1:]))


def moved_bytes():
    """Bytes of device memory traffic per example in a step of DLRM with embeddings on the device, if each float32
    matrix is written once, and read once by each product or element-wise step that needs it."""
    total = 0
    for sizes in ((DENSE, *BOTTOM), (DIM + FIELDS * (FIELDS + 1) // 2, *HIDDEN, 1)):
        for inputs, outputs in zip(sizes, sizes[1:]):
            total += 3 * inputs  # for the output, for the gradient of the weights; their own gradient
            total += 4 * outputs  # written; their gradient for both products, and they for the activation's
    # Rows: read, pooled, into the dots, into the gradient of these; it, into the update; row read and written.
    return 4 * (total + 8 * FIELDS * DIM)


def crossing_bytes():
    """Bytes per example of DLRM copied to the device and back with embeddings in host memory: pooled rows, dense
    features and label; the gradient of the rows, the logit and the loss."""
    return 4 * (FIELDS * DIM + DENSE + 1), 4 * (FIELDS * DIM + 2)
