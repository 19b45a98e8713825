"""Every decoder of outside bytes has a target in tests/fuzz, and every target is for one.

What a header calls parse, decode, unpack, unpickle, cut, extract or feed stands in DECODERS or in NOT_OUTSIDE; other names
that read outside bytes stand in DECODERS too, as they come. check_decoders() yields (path, line, text)."""
import os
import re

# function -> (target, what the target calls to reach it)
DECODERS = {
    "archive_extract": ("archive", "archive_extract"), "archive_read": ("archive", "archive_read"),
    "json_cut": ("cut", "json_cut"), "json_cut_rest": ("cut", "json_cut_rest"), "report_cut": ("cut", "json_cut"),
    "json_parse": ("wire", "json_parse"), "json_parse_nul": ("wire", "json_parse"), "wire_decode": ("wire", "wire_decode"),
    "api_decode": ("wire", "wire_decode"), "clk_parse": ("query", "clk_parse"),
    "http_query": ("query", "http_query"), "runports_read": ("query", "runports_read"), "periods_parse": ("query", "periods_parse"),
    "dataset_read": ("data", "dataset_read"), "image_open": ("image", "image_open"),
    "expconf_parse": ("expconf", "expconf_parse"), "yamljson_parse": ("expconf", "yamljson_parse"),
    "yamljson_parse_lines": ("expconf", "expconf_parse"), "length_unit_parse": ("expconf", "expconf_parse"),
    "search_kind_parse": ("expconf", "expconf_view"), "search_mode_parse": ("expconf", "expconf_view"),
    "expsearch_read": ("expsearch", "expsearch_read"), "recv_frame": ("frames", "recv_frame"), "take_frames": ("frames", "take_frames"),
    "link_events_decode": ("link", "link_events_decode"), "link_order_decode": ("link", "link_order_decode"),
    "link_ack_decode": ("link", "link_ack_decode"), "link_life_decode": ("link", "link_events_decode"),
    "link_times_decode": ("link", "link_events_decode"), "link_marks_decode": ("link", "link_events_decode"),
    "link_silent_decode": ("link", "link_events_decode"), "link_unreached_decode": ("link", "link_events_decode"),
    "link_exit_decode": ("link", "link_events_decode"), "link_spec_decode": ("link", "link_order_decode"),
    "logline_feed": ("output", "logline_feed"), "logline_parse": ("output", "logline_feed"), "traceback_line": ("output", "traceback_line"),
    "pystacks_line": ("output", "pystacks_line"), "stackfold_add": ("output", "stackfold_add"),
    "pattern_compile": ("pattern", "pattern_compile"), "pem_find": ("pem", "pem_find"), "b64_decode": ("pem", "pem_fingerprint"),
    "pth_parse": ("pth", "pth_parse"), "pth_unpickle": ("pth", "pth_unpickle"),
    "metric_body_decode": ("reports", "metric_body_decode"), "metric_bundle_read": ("reports", "metric_bundle_read"),
    "authority_issue_agent": ("request", "authority_issue_agent"),
    "core_restore_trial": ("rows", "core_restore_trial"), "exp_state_parse": ("rows", "core_restore_experiment"),
    "trial_state_parse": ("rows", "core_restore_trial"), "alloc_state_parse": ("rows", "core_restore_allocation"),
    "series_parse": ("series", "series_parse"), "spool_open": ("spool", "spool_open"), "tfevents_read": ("tfevents", "tfevents_read"),
}
NOT_OUTSIDE = {
    "agentopts_parse": "the agent's own command line", "opt_parse": "a program's own command line",
    "account_range_parse": "an option of who runs the agent", "log_level_parse": "an option, one of a few words",
    "model_entry_parse": "the trial's own entry point, in its own process", "host_load_parse": "the kernel's own files",
    "module_grads_unpack": "as many bytes as the model needs, or a refusal; pth_parse() found them",
    "det_init_sparse": "no decoder", "wide_cut": "no decoder", "http_stream_cut": "no decoder", "http_peer_cut": "no decoder",
}
READS = re.compile(r"\b((?:[a-z]\w*_)?(?:parse|decode|unpack|unpickle|cut|extract|feed)(?:_\w+)?)\(")


def declared(text):
    """(name, line) of what a header declares and what looks like a decoder; comments and macros say nothing."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    text = re.sub(r"^#(?:.*\\\n)*.*$", lambda m: "\n" * m.group().count("\n"), text, flags=re.M)
    return [(m.group(1), text.count("\n", 0, m.start()) + 1) for m in READS.finditer(text)]


def check_headers(headers, known):
    for path, text in headers:
        for name, line in declared(text):
            if name not in known:
                yield path, line, f"{name}() reads bytes: name its target in tests/tidy/decoders.py, or why it needs none"


def check_targets(targets, decoders):
    """targets: {name: text}"""
    here = "tests/tidy/decoders.py"
    for name, (target, by) in decoders.items():
        if target not in targets:
            yield here, 1, f"{name}: there is no tests/fuzz/fuzz_{target}.c"
        elif not re.search(rf"\b{by}\(", targets[target]):
            yield here, 1, f"{name}: tests/fuzz/fuzz_{target}.c does not call {by}()"
    for target in sorted(set(targets) - {t for t, _ in decoders.values()}):
        yield f"tests/fuzz/fuzz_{target}.c", 1, "no decoder of tests/tidy/decoders.py has this target"


def check_decoders(top, files):
    headers = [(f, open(os.path.join(top, f), encoding="utf-8").read()) for f in files
               if f.endswith(".h") and not f.startswith(("tests/", "bench/", "examples/"))]
    folder = os.path.join(top, "tests/fuzz")
    targets = {f[5:-2]: open(os.path.join(folder, f), encoding="utf-8").read() for f in os.listdir(folder)
               if f.startswith("fuzz_") and f.endswith(".c") and f != "fuzz_main.c"}
    named = {name for _, text in headers for name in re.findall(r"\b\w+(?=\()", text)}
    yield from check_headers(headers, DECODERS.keys() | NOT_OUTSIDE.keys())
    yield from check_targets(targets, DECODERS)
    for name in sorted(NOT_OUTSIDE.keys() - named):
        yield "tests/tidy/decoders.py", 1, f"{name}: no header declares it"
