"""DeepSpeed's configuration with some of its values from elsewhere, such as hyperparameters."""

import copy
import json
from typing import Any, Dict, List, Tuple, Union


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"duplicate keys in DeepSpeed's configuration: {sorted({n for n in names if names.count(n) > 1})}")
    return found


def _merge(base: Dict[str, Any], source: Dict[str, Any]) -> Dict[str, Any]:
    for key, value in source.items():
        inner = base.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        base[key] = _merge(inner, value) if both else copy.deepcopy(value)  # type: ignore[arg-type]
    return base


def overwrite_deepspeed_config(base_ds_config: Union[str, Dict[str, Any]], source_ds_dict: Dict[str, Any]) -> Dict[str, Any]:
    """A JSON file's values or a dict's, replaced and completed by those of another dict; groups are merged."""
    if isinstance(base_ds_config, str):
        with open(base_ds_config, encoding="utf-8") as f:
            base = json.load(f, object_pairs_hook=_once)
    elif isinstance(base_ds_config, dict):
        base = copy.deepcopy(base_ds_config)
    else:
        raise TypeError("Expected string or dict for base_ds_config argument.")
    return _merge(base, source_ds_dict)
