"""A strict reader of Prometheus' text format, version 0.0.4.

parse(text) gives {family: (type, {(sample name, ((label, value), ...)): number})} and fails on what a scraper may refuse:
samples outside their family, a family twice, a sample twice, unknown types, labels not escaped, histograms that are not
cumulative or lack +Inf, _sum or _count, a negative counter, a text that does not end in a newline.
"""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")


def family_of(name, kind, families):
    if name in families and families[name][0] != "histogram":
        return name
    for suffix in ("_bucket", "_sum", "_count") if kind == "histogram" else ():
        if name.endswith(suffix) and name[:-len(suffix)] in families:
            return name[:-len(suffix)]
    raise AssertionError(f"{name}: a sample outside its family")


def check_histogram(name, samples):
    buckets = [(dict(labels)["le"], v) for (n, labels), v in samples.items() if n == name + "_bucket"]
    bounds = [float(b) for b, _ in buckets]
    counts = [v for _, v in buckets]
    assert bounds == sorted(bounds) and bounds[-1] == float("inf"), f"{name}: bounds {bounds}"
    assert counts == sorted(counts), f"{name}: not cumulative: {counts}"
    assert samples[(name + "_count", ())] == counts[-1] and (name + "_sum", ()) in samples, f"{name}: count or sum"


def parse(text):
    assert text.endswith("\n"), "no newline at the end"
    families, current, helped = {}, None, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            helped = line.split(" ", 3)[2]
            assert helped not in families and len(line.split(" ", 3)) == 4, line
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current == helped and kind in ("counter", "gauge", "histogram") and re.fullmatch(NAME, current), line
            assert kind != "counter" or current.endswith("_total"), f"{current}: a counter's name ends in _total"
            families[current] = (kind, {})
        else:
            m = SAMPLE.fullmatch(line)
            assert m, f"not a sample: {line!r}"
            labels = tuple(re.findall(LABEL, m.group(2) or ""))
            kind, samples = families[current]
            assert family_of(m.group(1), kind, families) == current, line
            key = (m.group(1), labels)
            assert key not in samples and len({k for k, _ in labels}) == len(labels), f"twice: {line}"
            samples[key] = float(m.group(7))
            assert kind == "gauge" or samples[key] >= 0, line
    for name, (kind, samples) in families.items():
        assert samples or kind == "counter", f"{name}: empty"
        if kind == "histogram":
            check_histogram(name, samples)
    return families


def value(families, name, **labels):
    family = next(f for f in (name, *(name.rsplit("_", 1)[0],)) if f in families)
    wanted = set(labels.items())
    found = [v for (n, got), v in families[family][1].items() if n == name and wanted <= set(got)]
    assert found, f"no {name} {labels}"
    return sum(found)
