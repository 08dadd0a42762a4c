"""Click logs that use known rows of the table, for benchmarks of tables on SSD."""

COLUMNS = 20  # sparse columns, each with values of its own

# The part of a job that says what is in such a log; dir is where it is.
DATA = """\
data:
  train: [{dir}/first.tsv]
  format: tsv
  header: false
  columns:
    - {{name: label, role: label}}
""" + "".join(f"    - {{{{name: c{c}, role: sparse}}}}\n" for c in range(COLUMNS))


def line(i, numbers):
    """The text of an example with the values of the given numbers, one per column. i determines its label."""
    return f"{int(i % 7 == 0)}\t" + "\t".join(f"{n * COLUMNS + c:x}" for c, n in enumerate(numbers)) + "\n"


def write(path, lines):
    """Writes the texts of examples."""
    with open(path, "w") as f:
        f.writelines(lines)


def write_each(path, numbers):
    """Writes an example for each number, which has the value of that number in all columns."""
    write(path, (line(i, [i] * COLUMNS) for i in numbers))
