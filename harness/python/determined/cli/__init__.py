"""`det` in Python's clothes, for machines where the program itself is not: its everyday commands, over determined.experimental.client.

Where a `det` that is a program lies on PATH, that one runs instead, with everything it has.
"""

import argparse
import getpass
import os
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from determined import __version__, errors
from determined.experimental import client
from determined.experimental._master import keep_login, own_password


def _program() -> Optional[str]:
    """The `det` that is no script."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder or ".", "det")
        try:
            with open(path, "rb") as f:
                if f.read(4) == b"\x7fELF" and os.access(path, os.X_OK):
                    return path
        except OSError:
            continue
    return None


def _table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    texts = [list(names), *([("" if v is None else str(v)) for v in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(names))]
    for row in texts:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())


def _facts(thing: Any) -> None:
    for name, value in vars(thing).items():
        if not name.startswith("_"):
            print(f"{name}: {getattr(value, 'name', value)}")


# ---- verbs ----


def _create(a: argparse.Namespace) -> int:
    made = client._current()._submit(_config(a), a.model_dir, a.include, None, a.project_id, a.template, not a.paused)
    print(f"Created experiment {made.id}")
    return _follow(made) if a.follow and not a.paused else 0


def _config(a: argparse.Namespace) -> Any:
    """The file as it stands; with --config KEY=VALUE what is in it then, which needs PyYAML."""
    if not a.changes:
        return a.config
    try:
        from determined.cli import _yaml
    except ImportError:
        raise ValueError("--config needs PyYAML here: pip install pyyaml, or write it into the file") from None
    with open(a.config, encoding="utf-8") as f:
        config = _yaml.load(f.read())
    for change in a.changes:
        key, found, text = change.partition("=")
        if not found or not isinstance(config, dict):
            raise ValueError(f"--config {change}: write KEY=VALUE, such as searcher.max_length.batches=100")
        _set(config, key.split("."), _yaml.load(text))
    return config


def _set(config: Dict[str, Any], keys: List[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = config.get(key)
        config[key] = config = inner if isinstance(inner, dict) else {}
    config[keys[-1]] = value


def _follow(experiment: Any) -> int:
    for line in experiment.await_first_trial().iter_logs(follow=True):
        sys.stdout.write(line)
    return _wait_for(experiment)


def _wait_for(experiment: Any, interval: float = 1.0) -> int:
    state = experiment.wait(interval=interval)
    print(f"Experiment {experiment.id} is {state.name}")
    return 0 if state == client.ExperimentState.COMPLETED else 1


def _wait(a: argparse.Namespace) -> int:
    return _wait_for(client.get_experiment(a.id), a.interval)


def _list(a: argparse.Namespace) -> int:
    found = [e for e in client.list_experiments() if a.all or not e.archived]
    _table(("ID", "NAME", "STATE", "PROGRESS"), [(e.id, e.name, e.state.name, _percent(e.progress)) for e in found])
    return 0


def _percent(part: Optional[float]) -> Optional[str]:
    return None if part is None else f"{100 * part:.0f} %"


def _describe(a: argparse.Namespace) -> int:
    _facts(client.get_experiment(a.id))
    return 0


def _do(what: str) -> Callable[[argparse.Namespace], int]:
    def verb(a: argparse.Namespace) -> int:
        getattr(client.get_experiment(a.id), what)()
        return 0

    return verb


def _list_trials(a: argparse.Namespace) -> int:
    found = client.get_experiment(a.id).list_trials()
    _table(("ID", "STATE", "HYPERPARAMETERS"), [(t.id, t.state.name, t.hparams) for t in found])
    return 0


def _list_checkpoints(a: argparse.Namespace) -> int:
    found = client.get_experiment(a.id)._in_any_state()
    found.sort(key=lambda c: c.state is not client.CheckpointState.COMPLETED)  # those that can be had first, as det shows them
    rows = [(c.training.trial_id, c.metadata.get("steps_completed"), c.state.name, c.uuid) for c in found]
    _table(("TRIAL", "BATCHES", "STATE", "UUID"), rows)
    return 0


def _describe_trial(a: argparse.Namespace) -> int:
    _facts(client.get_trial(a.id))
    return 0


def _logs_of_first(a: argparse.Namespace) -> int:
    found = client.get_experiment(a.id).list_trials()
    if not found:
        raise ValueError(f"experiment {a.id} has no trial yet")
    a.id = found[0].id
    return _logs(a)


def _logs(a: argparse.Namespace) -> int:
    for line in client.get_trial(a.id).iter_logs(follow=a.follow, head=a.head, tail=a.tail):
        sys.stdout.write(line)
    return 0


def _kill_trial(a: argparse.Namespace) -> int:
    client.get_trial(a.id).kill()
    return 0


def _download(a: argparse.Namespace) -> int:
    print(client.get_checkpoint(a.uuid).download(a.output_dir))
    return 0


def _download_of_trial(a: argparse.Namespace) -> int:
    if a.latest + a.best + (a.uuid is not None) > 1:
        raise ValueError("give one of --best, --latest and --uuid")
    found = client.get_trial(a.id).select_checkpoint(latest=a.latest, best=a.best or not (a.latest or a.uuid), uuid=a.uuid)
    print(found.download(a.output_dir))
    return 0


def _why(a: argparse.Namespace) -> int:
    kind, _, number = a.what.rpartition(":")
    if kind not in ("", "exp", "experiment", "trial") or not number.isdigit():
        raise ValueError(f"'{a.what}': write exp:ID or trial:ID; a number alone is a trial's")
    of: Any = client.get_experiment(int(number)) if kind.startswith("exp") else client.get_trial(int(number))
    why = of._master.get(f"/api/v1/{'experiments' if kind.startswith('exp') else 'trials'}/{number}/why")
    print(why["text"])
    failed = None if kind.startswith("exp") or of.state != client.TrialState.ERROR else _exception(of)
    if failed is not None:
        print(f"Its log says: {failed}")
    return 0


_LINE = re.compile(r"^(?:\[[^]]*\] (?:\S+ )?(?:\[rank=\d+\] )?\|\| (?:[A-Z]+: )?)?(.*)$")  # what stands before a line's own text
_FILE = re.compile(r'  File "([^"]+)", line (\d+), in (\S+)')


def _exception(trial: Any) -> Optional[str]:
    """The last exception in a trial's log, and the innermost line of the user's own that it passed."""
    said, place, inside = None, "", False
    for entry in trial.iter_logs(tail=300):
        text = _LINE.sub(r"\1", entry.rstrip("\n"))
        if text.startswith("Traceback (most recent call last)"):
            inside, place = True, ""
        elif inside and _FILE.match(text):
            path, line, function = _FILE.match(text).groups()  # type: ignore
            if not re.search(r"/lib/python3|-packages/|/python/determined/|^<", path):
                place = f" ({path.rpartition('/work/')[2]}, line {line}, in {function})"
        elif inside and text and not text.startswith(" "):
            said, inside = text + place, False
    return said


def _login(a: argparse.Namespace) -> int:
    password = own_password()
    if password is None:
        password = getpass.getpass(f"Password for user '{a.name}': ")
    master = client.Determined(a.master, a.name, password)._master
    keep_login(master.url, a.name, master._token or "")
    return 0


def _whoami(a: argparse.Namespace) -> int:
    print(client.whoami().username)
    return 0


_OF_CHECKPOINTS = (errors.CheckpointNotFound, errors.CheckpointStateException, errors.NoDirectStorageAccess)

# ---- the table ----

Argument = Tuple[Tuple[str, ...], Dict[str, Any]]
ID: Argument = (("id",), {"type": int})
FOLLOW: Argument = (("-f", "--follow"), {"action": "store_true", "help": "the log, until the end"})
TAIL: Argument = (("--tail",), {"type": int, "metavar": "N", "help": "the last N lines"})
ENDS: List[Argument] = [(("--head",), {"type": int, "metavar": "N", "help": "the first N lines"}), TAIL]
CREATE: List[Argument] = [
    (("-f", "--follow", "--follow-first-trial"), {"action": "store_true", "help": "the log, until the end"}),
    (("--paused",), {"action": "store_true", "help": "det experiment activate starts it"}),
    (("--config",), {"action": "append", "default": [], "dest": "changes", "metavar": "KEY=VALUE", "help": "in place of what the file says"}),
    (("--template",), {"metavar": "NAME"}),
    (("--project_id", "--project-id"), {"type": int, "metavar": "ID"}),
    (("-i", "--include"), {"action": "append", "metavar": "PATH", "help": "files beside the model's directory"}),
]


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e6:
        raise ValueError(text)
    return seconds


Verbs = Dict[str, Tuple[Callable[[argparse.Namespace], int], List[Argument]]]

EXPERIMENT: Verbs = {
    "create": (_create, [(("config",), {}), (("model_dir",), {"nargs": "?"}), *CREATE]),
    "list": (_list, [(("-a", "--all"), {"action": "store_true", "help": "archived ones too"})]),
    "describe": (_describe, [ID]),
    "wait": (_wait, [ID, (("--polling-interval",), {"dest": "interval", "type": _seconds, "default": 1.0, "metavar": "SECONDS"})]),
    "logs": (_logs_of_first, [ID, FOLLOW, *ENDS]),
    **{name: (_do(name), [ID]) for name in ("pause", "activate", "cancel", "kill", "archive", "unarchive", "delete")},
    "list-trials": (_list_trials, [ID]),
    "list-checkpoints": (_list_checkpoints, [ID]),
}
OUTPUT: Argument = (("-o", "--output-dir"), {"help": "default: checkpoints/UUID"})
WHICH: List[Argument] = [(("--best",), {"action": "store_true", "help": "by the searcher's metric; the default"}),
                         (("--latest",), {"action": "store_true"}), (("--uuid",), {})]
TRIAL: Verbs = {"describe": (_describe_trial, [ID]), "logs": (_logs, [ID, FOLLOW, *ENDS]), "kill": (_kill_trial, [ID]),
                "download": (_download_of_trial, [ID, *WHICH, OUTPUT])}
CHECKPOINT: Verbs = {"download": (_download, [(("uuid",), {}), OUTPUT])}
USER: Verbs = {"login": (_login, [(("name",), {})]), "whoami": (_whoami, [])}
NOUNS: Dict[str, Tuple[str, Verbs]] = {"experiment": ("e", EXPERIMENT), "trial": ("t", TRIAL), "checkpoint": ("c", CHECKPOINT), "user": ("u", USER)}

ALIASES = {"activate": ["unpause"], "list": ["ls"], "list-trials": ["lt"], "list-checkpoints": ["lc"]}


# Of Determined's commands: those that no det of ours has.
ABSENT = {
    ("command", "cmd"): "submit it as an experiment, whose entrypoint may be any command: entrypoint: sh run.sh",
    ("notebook",): "run Jupyter on this machine and submit from it: determined.experimental.client",
    ("shell",): "det trial logs ID -f shows what a trial prints; ssh reaches its host",
    ("tensorboard",): "the event files lie in the experiment's checkpoint storage; tensorboard --logdir DIRECTORY shows them",
    ("auth", "oauth"): "people log in with a name and a password: det user login NAME",
    ("deploy", "d"): "deploy/quickstart sets up one machine, docs/install.md several",
    ("dev",): "determined.experimental.client and docs/api.md have the routes",
}


def _instead(word: str) -> Optional[str]:
    return next((f"det: there is no 'det {word}' here: {said}\n" for names, said in ABSENT.items() if word in names), None)


class _Parser(argparse.ArgumentParser):
    """Says where what is not here is: people know more commands than a client without the program has."""

    def error(self, message: str) -> Any:
        _, unknown, options = message.partition("unrecognized arguments: ")
        if unknown:
            self.exit(2, f"det: {options} is not in det's Python client; the program det, on the cluster's own machines, knows it or says what to do instead\n")
        _, found, rest = message.partition("invalid choice: ")
        if not found:
            super().error(message)
        word = rest.partition(" (choose from")[0]
        said = _instead(word.strip("'")) if self.prog == "det" else None
        if said is not None:
            self.exit(2, said)
        self.exit(2, f"det: {word} is not in det's Python client, which has {self._choices()}; the program det, on the cluster's own machines, has the rest\n")

    def _choices(self) -> str:
        return ", ".join(dict.fromkeys(c.dest for a in self._actions if isinstance(a, argparse._SubParsersAction) for c in a._choices_actions))


def parser() -> argparse.ArgumentParser:
    whole = _Parser(prog="det", description="The everyday commands of det, by its Python client.")
    whole.add_argument("-v", "--version", action="version", version=f"det {__version__} (Python client)")
    whole.add_argument("-m", "--master", metavar="URL", help="default: $DET_MASTER, else localhost:8080")
    whole.add_argument("-u", "--user", metavar="NAME", help="default: $DET_USER, else who logged in last")
    nouns = whole.add_subparsers(metavar="NOUN", required=True)
    for noun, (alias, verbs) in NOUNS.items():
        place = nouns.add_parser(noun, aliases=[alias], help=", ".join(verbs)).add_subparsers(metavar="VERB", required=True)
        for name, (run, arguments) in verbs.items():
            verb = place.add_parser(name, aliases=ALIASES.get(name, []), help="")
            verb.set_defaults(run=run)
            for names, options in arguments:
                verb.add_argument(*names, **options)
    why = nouns.add_parser("why", help="why a trial or an experiment waits, runs or has ended")
    why.add_argument("what", metavar="trial:ID|exp:ID")
    why.set_defaults(run=_why)
    return whole


def main(argv: Optional[List[str]] = None) -> int:
    given = sys.argv[1:] if argv is None else argv
    program = _program()
    if program is not None:
        os.execv(program, [program, *given])
    a = parser().parse_args(given)
    try:
        if a.run is not _login:
            client.login(a.master, a.user)
        return int(a.run(a))
    except (client.APIException, *_OF_CHECKPOINTS, OSError, ValueError) as e:
        print(f"det: {e}", file=sys.stderr)
        return 1
