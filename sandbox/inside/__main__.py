"""Starts the supervisor: `python __main__.py container|process SLOT...`, where a slot is a directory of its own."""

import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])
sys.path.insert(0, ROOT)

from sandbox.inside.supervisor import main  # noqa: E402

main(sys.argv[1:], ROOT)
