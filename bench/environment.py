"""Virtual environments for the comparisons of this directory."""

import pathlib
import subprocess
import sys


def prepare(venv, requirements):
    """Makes a virtual environment with the packages of a file, unless it exists, and returns its Python."""
    venv, requirements = pathlib.Path(venv), pathlib.Path(requirements)
    python, stamp = venv / "bin/python", venv / "installed"
    wanted = requirements.read_text()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {requirements} into {venv}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "-r", requirements], check=True)
        stamp.write_text(wanted)
    return python
