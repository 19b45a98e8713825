"""YAML as the master reads it (1.2's core schema): PyYAML by itself reads 1.1, where 1e-4 is a text, `on` a truth and 2020-01-01 a date."""

import math
import re
from typing import Any, Dict

import yaml  # type: ignore


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: Dict[str, Any] = {}
    yaml_constructors = {tag: f for tag, f in yaml.SafeLoader.yaml_constructors.items()
                         if tag is None or tag.rpartition(":")[2] in ("null", "bool", "float", "str", "seq", "map")}

    def construct_mapping(self, node: Any, deep: bool = False) -> Dict[str, Any]:
        """Keys are texts as they stand, each once; those of << give way to a map's own."""
        given = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ValueError(f"a key of a map must be a text:{key.start_mark}")
            if key.value in given:
                raise ValueError(f"'{key.value}' is given twice:{key.start_mark}")
            given.add(key.value)
        self.flatten_mapping(node)
        return {key.value: self.construct_object(value, deep=True) for key, value in node.value}

    def construct_int(self, node: Any) -> int:
        text = self.construct_scalar(node)
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))

    def construct_number(self, node: Any) -> float:
        number = float(self.construct_yaml_float(node))
        if not math.isfinite(number):
            raise ValueError(f"{node.value} is no number that an experiment can have:{node.start_mark}")
        return number


_PLAIN = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
)
for _name, _form, _first in _PLAIN:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(rf"(?:{_form})\Z"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)


def load(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as e:
        raise ValueError(f"not YAML: {e}") from None
