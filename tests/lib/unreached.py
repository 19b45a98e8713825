"""Why lines were not reached, as far as their own words tell: a reason for each run of such lines in a file."""
import re

NONE_KNOWN = "none is known: a test may be missing"
UNCALLED = "no test calls the function, or only in a process that is killed"
# The first whose pattern is in the lines decides.
BY_WORDS = (
    ("our own mistake, which stops the program", r"\babort\(\)|\bassert\("),
    ("memory is out", r"ENOMEM|no memory|memory is out"),
    ("a call of the system fails", r"_errno\(|\berrno\b|strerror|uv_err_name"),
    ("PostgreSQL goes away between two calls", r"PQ\w+\(|PostgreSQL|DB_UNREACHABLE"),
    ("a GPU, its driver or its libraries fail", r"cuda|CUDA|cublas|cudnn|[Nn]ccl|NCCL|hip[A-Z]"),
    ("a child that ends without writing counts", r"\b_exit\(|\bexecv?[lpe]*\("),
)
PASSED_ON = "an error of what it calls, passed on"
PASSES_ON = re.compile(r"return (?:rc|-1|NULL|false|true|err->code|NAN)?;|return det_wrap\(.*|goto \w+;|\w+_(?:unref|destroy|finish|close|free|clear)\(.*\);|free\(.*\);"
                       r"|\w+ = NULL;|det__keep_error\(.*\);|rc = -?\w+;|break;|continue;|\}?")
LOGS = re.compile(r"log_(?:warning|error|info|debug)\(")


def reason_of(text):
    """Of lines that stand together."""
    for reason, pattern in BY_WORDS:
        if re.search(pattern, text):
            return reason
    bare = [re.sub(r"/\*.*?\*/", "", line).strip() for line in text.splitlines()]
    if bare and all(PASSES_ON.fullmatch(line) for line in bare):
        return PASSED_ON
    if bare and LOGS.match(bare[0]):
        return "a word in the log about such an error"
    return NONE_KNOWN


def runs_of(counts, heads=()):
    """Lines that nothing reached with none that something did between them, nor the head of a function: [[line, ...], ...];
    counts: {line: times}."""
    runs, open_run = [], None
    for line in sorted(counts):
        if counts[line]:
            open_run = None
        elif open_run is None or line in heads:
            runs.append(open_run := [line])
        else:
            open_run.append(line)
    return runs


def reasons(counts, source):
    """{line: reason} of a file's lines that nothing reached; source: its text."""
    lines = source.splitlines()
    heads = {n for n, line in enumerate(lines, 1) if line[:1].isidentifier()}
    found = {}
    for run in runs_of(counts, heads):
        reason = UNCALLED if run[0] in heads else reason_of("\n".join(lines[run[0] - 1:run[-1]]))
        found.update(dict.fromkeys(run, reason))
    return found
