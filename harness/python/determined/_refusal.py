"""What the master says where it refuses."""

import json
import urllib.error


def text_of(e: urllib.error.HTTPError) -> str:
    """Its sentence; the answer as it stands where something between us and the master gave it."""
    text = e.read().decode(errors="replace")
    try:
        said = json.loads(text)
        return said.get("message") or said.get("error", {}).get("error") or text
    except (ValueError, AttributeError):
        return text
