import os
import re


def get_last_checkpoint(folder):
    """The checkpoint-N with the highest N."""
    found = [n for n in os.listdir(folder) if re.fullmatch(r"checkpoint-\d+", n) and os.path.isdir(os.path.join(folder, n))]
    return os.path.join(folder, max(found, key=lambda n: int(n.split("-")[1]))) if found else None
