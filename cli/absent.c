#include "absent.h"

#include "mem.h"
#include <string.h>

#define ALL "all that there are come in one answer; --json and --csv are for programs"
#define NODEV                                                                                      \
    "det NOUN VERB --json prints the API's own answer; docs/compatibility.md says what differs"
#define AGENTU "tasks run as the submitting user's agent user: det user link-with-agent-user"
#define STORE                                                                                      \
    "say it in each experiment's checkpoint_storage, or in a template: det template create"
#define POOLS  "say it in each experiment's resources.resource_pool, or in a template"
#define UPHELP "deploy/quickstart sets up one machine, docs/install.md several"

const struct absent absent_table[] = {
    /* tasks that are no trials */
    {"command|cmd", "*", NULL, 0,
     "submit it as an experiment, whose entrypoint may be any command: "
     "entrypoint: sh run.sh, then  det experiment create CONFIG DIR -f"},
    {"notebook", "*", NULL, 0,
     "run Jupyter on a machine of your own that has the package determined (pip install . in this "
     "project's directory) and submit from it: determined.experimental.client"},
    {"shell", "*", NULL, 0,
     "det task list names the host of each trial, which ssh reaches; "
     "det trial logs ID -f shows what one prints"},
    {"tensorboard", "*", NULL, 0,
     "TensorBoard is no task of the cluster; det tensorboard start EXPERIMENT names the event files "
     "and the command that shows them"},
    {"tensorboard", "start", "config", 0, "it runs where you start it, with its own options"},
    {"tensorboard", "start", "config-file", 0, "it runs where you start it, with its own options"},
    {"tensorboard", "start", "workspace-name", 'w', "the files are the experiment's own"},
    {"tensorboard", "start", "context", 'c', "it runs where you start it and sees your files"},
    {"tensorboard", "start", "include", 'i', "it runs where you start it and sees your files"},
    {"tensorboard", "start", "no-browser", 0, "no browser is opened anyway"},
    {"tensorboard", "start", "detach", 'd', "nothing is started that could be waited for"},
    /* people and rights */
    {"auth", "*", NULL, 0, "people log in with a name and a password: det user login NAME"},
    {"auth", "logout", NULL, 0, "det user logout"},
    {"oauth", "*", NULL, 0, "people log in with a name and a password: det user login NAME"},
    {"user", "edit", NULL, 0,
     "det user activate, deactivate and link-with-agent-user change what can be changed"},
    {"user", "rename", NULL, 0, "make another and deactivate this one: det user create NAME"},
    {"user", "create", "remote", 0, "people log in with a password: det user change-password NAME"},
    {"user", "list", "all", 'a', "those that are not active are listed too"},
    {"user", "logout", "all", 'a', "log each out by itself: det -u NAME user logout"},
    /* the cluster */
    {"master", "config set", NULL, 0, "write log.level in master.yaml and start the master again"},
    {"master", "config", "log.level", 0, "write it in master.yaml and start the master again"},
    {"master", "config", "log.color", 0, "the log is plain text"},
    {"resource-pool", "bindings", NULL, 0, "every workspace may use every pool; " POOLS},
    {"deploy|d", "*", NULL, 0, UPHELP},
    {"deploy|d", "local", NULL, 0,
     "deploy/quickstart starts a master and an agent on this machine, deploy/quickstart down ends "
     "them"},
    {"dev", "*", NULL, 0, NODEV},
    {"dev", "auth-token", NULL, 0,
     "POST /api/v1/auth/login answers with a token; that of det itself is kept in "
     "~/.config/determined/auth.json"},
    {"dev", "curl", NULL, 0,
     "curl -H \"Authorization: Bearer $TOKEN\" MASTER/api/v1/... with the token that POST "
     "/api/v1/auth/login answers with; or det NOUN VERB --json"},
    /* experiments, trials and checkpoints */
    {"experiment", "create", "include", 'i',
     "put the file into the model's directory, as a link if it lies elsewhere"},
    {"experiment", "create", "git", 'g',
     "check the commit out and give its directory: it is sent as it is, whatever .git says"},
    {"experiment", "create", "local", 0,
     "without a cluster:  det-harness run model_def.c --config CONFIG,  or  python3 -m "
     "determined.exec.local model_def:Trial --config CONFIG; --test trains one batch on the "
     "cluster"},
    {"experiment", "create", "publish", 'p',
     "ports of a task are not forwarded: ssh -L to the agent that det task list names"},
    {"experiment", "fork", NULL, 0,
     "det experiment config ID > c.yaml, det experiment download-model-def ID, change what is to be "
     "another, det experiment create c.yaml DIR; with --config searcher.source_trial_id=TRIAL it "
     "begins with that trial's latest checkpoint"},
    {"experiment", "describe", "outdir", 0,
     "det experiment list-trials ID --csv > FILE, det trial describe ID --json > FILE"},
    {"experiment", "delete-tb-files", NULL, 0,
     "det experiment delete removes them with all else; before that they are files in the "
     "checkpoint storage"},
    {"experiment", "list", "show_project", 0, "det project list-experiments WORKSPACE NAME"},
    {"trial", "support-bundle", NULL, 0,
     "det trial logs ID, det trial timeline ID, det trial describe ID --json and det master logs "
     "have what it would hold"},
    {"checkpoint", "download", "quiet", 'q', "only the place is printed anyway"},
    {"checkpoint", "download", "mode", 0,
     "the files are copied from the store, which this host must see"},
    /* places */
    {"workspace", "list-pools", NULL, 0, "every workspace may use every pool: det rp list"},
    {"workspace", "create|edit", "agent-uid", 0, AGENTU},
    {"workspace", "create|edit", "agent-user", 0, AGENTU},
    {"workspace", "create|edit", "agent-gid", 0, AGENTU},
    {"workspace", "create|edit", "agent-group", 0, AGENTU},
    {"workspace", "create|edit", "checkpoint-storage-config", 0, STORE},
    {"workspace", "create|edit", "checkpoint-storage-config-file", 0, STORE},
    {"workspace", "create|edit", "default-compute-pool", 0, POOLS},
    {"workspace", "create|edit", "default-aux-pool", 0, POOLS},
    {"project", "list|ls", NULL, 0, "det workspace list-projects WORKSPACE"},
    {"project", "describe", "all", 'a', "det project list-experiments WORKSPACE NAME --all"},
    {"template", "set-value", NULL, 0, "det template set NAME FILE replaces its configuration"},
    {"template", "create", "workspace-name", 'w', "a template is for all workspaces"},
    /* how much is listed, and how it reads */
    {"job", "list", "reverse", 0, "turn the list round:  det job list | tac"},
    {"job", "list", "table", 0, "a table is what is printed without --json and --csv"},
    {"*", "*", "pages", 0, "--limit N and --offset N, where the verb has them, cut the list"},
    {"*", "*", "limit", 0, ALL},
    {"*", "*", "offset", 0, ALL},
    {"experiment", "list-trials", "sort-by", 0,
     "it is called --sort COLUMN; --sort -COLUMN is the other way round"},
    {"experiment", "list-trials", "order-by", 0, "--sort -COLUMN is the other way round"},
    {"*", "*", "sort-by", 0, "it is sorted by id; --json and --csv are for programs that sort it"},
    {"*", "*", "order-by", 0, "it is sorted by id; --json and --csv are for programs that sort it"},
    {"*", "*", "yaml", 0, "--json prints it, and every YAML reader takes JSON"},
    {0},
};
_Static_assert(DET_ARRAY_LEN(absent_table) <= ABSENT_MAX, "ABSENT_MAX is too small");

/* Whether word is one of "a|b|c"; "*" holds for all. */
static bool is_among(const char *list, const char *word)
{
    size_t n = strlen(word);
    if (strcmp(list, "*") == 0)
        return true;
    for (const char *p = list; *p; p += *p == '|') {
        size_t m = strcspn(p, "|");
        if (m == n && strncmp(p, word, n) == 0)
            return true;
        p += m;
    }
    return false;
}

/* A row that names the verb goes before one for all of the noun's. */
const struct absent *absent_find(const char *noun, const char *verb)
{
    const struct absent *found = NULL;
    for (const struct absent *a = absent_table; a->noun; a++) {
        bool every = strcmp(a->verb, "*") == 0;
        if (a->opt || !is_among(a->noun, noun))
            continue;
        if (every ? !found : verb && is_among(a->verb, verb))
            found = a;
    }
    return found;
}

size_t absent_options(const char *noun, const char *verb, struct opt *opts)
{
    size_t n = 0;
    for (const struct absent *a = absent_table; a->noun; a++)
        if (a->opt && is_among(a->noun, noun) && is_among(a->verb, verb))
            opts[n++] = (struct opt){
                .name = a->opt, .short_name = a->letter, .kind = OPT_ABSENT, .help = a->answer};
    return n;
}
