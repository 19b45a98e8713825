"""`det` in Python's clothes, for machines where the program itself is not: its everyday commands, over determined.experimental.client.

Where a `det` that is a program lies on PATH, that one runs instead, with everything it has.
"""

import argparse
import getpass
import os
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
    made = client.create_experiment(a.config, a.model_dir)
    print(f"Created experiment {made.id}")
    return _follow(made) if a.follow else 0


def _follow(experiment: Any) -> int:
    for line in experiment.await_first_trial().iter_logs(follow=True):
        sys.stdout.write(line)
    return _wait_for(experiment)


def _wait_for(experiment: Any) -> int:
    state = experiment.wait(interval=1.0)
    print(f"Experiment {experiment.id} is {state.name}")
    return 0 if state == client.ExperimentState.COMPLETED else 1


def _wait(a: argparse.Namespace) -> int:
    return _wait_for(client.get_experiment(a.id))


def _list(a: argparse.Namespace) -> int:
    found = client.list_experiments()
    _table(("ID", "NAME", "STATE", "PROGRESS"), [(e.id, e.name, e.state.name, _percent(e.progress)) for e in found if not e.archived])
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
    found = client.get_experiment(a.id).list_checkpoints()
    _table(("UUID", "STATE", "BATCHES"), [(c.uuid, c.state.name, c.metadata.get("steps_completed")) for c in found])
    return 0


def _describe_trial(a: argparse.Namespace) -> int:
    _facts(client.get_trial(a.id))
    return 0


def _logs(a: argparse.Namespace) -> int:
    for line in client.get_trial(a.id).iter_logs(follow=a.follow, tail=a.tail):
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
    print(of._master.get(f"/api/v1/{'experiments' if kind.startswith('exp') else 'trials'}/{number}/why")["text"])
    return 0


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
Verbs = Dict[str, Tuple[Callable[[argparse.Namespace], int], List[Argument]]]

EXPERIMENT: Verbs = {
    "create": (_create, [(("config",), {}), (("model_dir",), {"nargs": "?"}), FOLLOW]),
    "list": (_list, []),
    "describe": (_describe, [ID]),
    "wait": (_wait, [ID]),
    **{name: (_do(name), [ID]) for name in ("pause", "activate", "cancel", "kill", "archive", "unarchive", "delete")},
    "list-trials": (_list_trials, [ID]),
    "list-checkpoints": (_list_checkpoints, [ID]),
}
TAIL: Argument = (("--tail",), {"type": int, "metavar": "N", "help": "the last N lines"})
OUTPUT: Argument = (("-o", "--output-dir"), {"help": "default: checkpoints/UUID"})
WHICH: List[Argument] = [(("--best",), {"action": "store_true", "help": "by the searcher's metric; the default"}),
                         (("--latest",), {"action": "store_true"}), (("--uuid",), {})]
TRIAL: Verbs = {"describe": (_describe_trial, [ID]), "logs": (_logs, [ID, FOLLOW, TAIL]), "kill": (_kill_trial, [ID]),
                "download": (_download_of_trial, [ID, *WHICH, OUTPUT])}
CHECKPOINT: Verbs = {"download": (_download, [(("uuid",), {}), OUTPUT])}
USER: Verbs = {"login": (_login, [(("name",), {})]), "whoami": (_whoami, [])}
NOUNS: Dict[str, Tuple[str, Verbs]] = {"experiment": ("e", EXPERIMENT), "trial": ("t", TRIAL), "checkpoint": ("c", CHECKPOINT), "user": ("u", USER)}

ALIASES = {"list": ["ls"], "list-trials": ["lt"], "list-checkpoints": ["lc"]}


class _Parser(argparse.ArgumentParser):
    """Says where what is not here is: people know more commands than a client without the program has."""

    def error(self, message: str) -> Any:
        _, found, rest = message.partition("invalid choice: ")
        if not found:
            super().error(message)
        word = rest.partition(" (choose from")[0]
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
