/* det why: what something waits for, what is in its way, and what would help. */
#include "cli.h"
#include "experiment.h"
#include "show.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "12" and "trial:12" are trials, "exp:3" and "experiment:3" experiments, a UUID is a job. Caller
 * frees. */
static char *path_of(const char *what, struct det_err *err)
{
    static const char *const kinds[][2] = {{"trial:", "trials"},
                                           {"t:", "trials"},
                                           {"exp:", "experiments"},
                                           {"e:", "experiments"},
                                           {"experiment:", "experiments"}};
    const char *kind = "trials", *id = what;
    for (size_t i = 0; i < DET_ARRAY_LEN(kinds); i++)
        if (strncmp(what, kinds[i][0], strlen(kinds[i][0])) == 0) {
            kind = kinds[i][1];
            id = what + strlen(kinds[i][0]);
        }
    if (id == what && strlen(what) == 36 && strspn(what, "0123456789abcdefABCDEF-") == 36)
        return det_asprintf("/jobs/%s/why", what);
    if (*id && strspn(id, "0123456789") == strlen(id) && strlen(id) < 10)
        return det_asprintf("/%s/%s/why", kind, id);
    det_fail(err, DET_EINVAL,
             "'%s' is nothing that can wait: a trial is 12 or trial:12, an experiment exp:3, a job "
             "its UUID",
             what);
    return NULL;
}

static void print_blockers(const json_t *j)
{
    static const char *const heads[] = {"IN THE WAY", ">EXPERIMENT", "OWNER", ">SLOTS",
                                        "AGENTS",     ">LEFT",       ""};
    struct table *t = table_create(heads, DET_ARRAY_LEN(heads));
    const json_t *list = json_arr(j, "blockers"), *agents;
    size_t i, k;
    json_t *b, *a;
    json_array_foreach((json_t *)list, i, b)
    {
        struct buf on = BUF_INIT;
        agents = json_arr(b, "agents");
        json_array_foreach((json_t *)agents, k, a)
            buf_addf(&on, "%s%s", k ? " " : "", json_string_value(a));
        double left = json_num(b, "secondsLeft", -1);
        table_cell(t, "trial %" PRId64, json_int(b, "trialId", 0));
        table_cell(t, "%" PRId64, json_int(b, "experimentId", 0));
        table_cell(t, "%s", json_str(b, "owner", ""));
        table_cell(t, "%" PRId64, json_int(b, "slots", 0));
        table_cell(t, "%s", buf_str(&on));
        table_cell(t, left < 0 ? "?" : "%.0f s", left);
        table_cell(t, "%s", json_flag(b, "ending", false) ? "ending" : "");
        buf_finish(&on);
    }
    int64_t more = json_int(j, "blockersTotal", 0) - (int64_t)json_array_size(list);
    table_print(t, "");
    if (more > 0)
        printf("and %" PRId64 " more\n", more);
}

static void print_head(const json_t *list, const char *head)
{
    if (json_array_size(list))
        printf("\n%s\n", head);
}

static void print_avoids(const json_t *list)
{
    size_t i;
    json_t *v;
    print_head(list, "Agents that failed it:");
    json_array_foreach((json_t *)list, i, v)
    {
        int64_t n = json_int(v, "failures", 0);
        printf("  - %s%s: %s", json_str(v, "agent", ""),
               json_flag(v, "out", false) ? " (left out)" : "", json_str(v, "text", ""));
        if (n > 0)
            printf(" (%" PRId64 " time%s)", n, n == 1 ? "" : "s");
        puts("");
    }
}

static void print_start(const json_t *e)
{
    double s = json_num(e, "seconds", -1);
    if (!json_is_object(e))
        return;
    if (s >= 0)
        printf("\nIt is expected to start in about %.0f s: %s.\n", s, json_str(e, "basis", ""));
    else
        printf("\nWhen it starts is not known: %s.\n", json_str(e, "basis", ""));
}

static void print_suggestions(const json_t *list)
{
    size_t i;
    json_t *s;
    print_head(list, "What would help:");
    json_array_foreach((json_t *)list, i, s)
    {
        printf("  - %s\n", json_str(s, "text", ""));
        if (*json_str(s, "command", ""))
            printf("      %s\n", json_str(s, "command", ""));
    }
}

static void print_why(const json_t *j)
{
    int64_t trial = json_int(j, "trialId", 0), exp = json_int(j, "experimentId", 0);
    if (trial > 0)
        printf("Trial %" PRId64, trial);
    else
        printf("Experiment %" PRId64, exp);
    if (trial > 0 && exp > 0)
        printf(" of experiment %" PRId64, exp);
    double s = json_num(j, "queuedSeconds", -1);
    if (s >= 0)
        printf(" has waited for %.1f s", s);
    printf(": %s.\n", json_str(j, "text", ""));
    int64_t ahead = json_int(j, "sameExperimentAhead", 0);
    if (ahead > 0)
        printf("%" PRId64 " trial%s of its own experiment come%s before it.\n", ahead,
               ahead == 1 ? "" : "s", ahead == 1 ? "s" : "");
    if (json_array_size(json_arr(j, "blockers"))) {
        puts("");
        print_blockers(j);
    }
    print_avoids(json_arr(j, "avoids"));
    print_start(json_object_get(j, "expectedStart"));
    print_suggestions(json_arr(j, "suggestions"));
}

/* Cut before what the master's own sentence has said already. */
static void cut_repeated(char *reason, const char *said)
{
    enum { WORDS_MIN = 20 };
    for (char *p = reason; (p = strpbrk(p, ":;")); p++)
        if (p[1] == ' ' && strlen(p + 2) >= WORDS_MIN && strstr(said, p + 2)) {
            *p = '\0';
            return;
        }
}

/* Of "rank 0 stalled: ... (train.py, line 5)", whose beginning the master has said: "(train.py,
 * line 5)"; "": no more than was said. NULL: it says something else. */
static const char *rest_of(const char *reason, const char *said)
{
    const char *last = strrchr(reason, '(');
    if (strstr(said, reason))
        return "";
    if (!last || last == reason || last[-1] != ' ' || strcspn(last, ")") + 1 != strlen(last))
        return NULL;
    char *head det_cleanup(freep) = det_strndup(reason, (size_t)(last - reason) - 1);
    if (!*head || !strstr(said, head))
        return NULL;
    return strstr(last, ", line ") ? last : "";
}

/* The exception of what failed, and the user's line: the master knows how its processes ended. */
static void print_failure(struct cli *c, const json_t *why)
{
    struct det_err err;
    JSON_OWN e = NULL;
    JSON_OWN t = NULL;
    int64_t exp = json_int(why, "experimentId", 0), trial = json_int(why, "trialId", 0);
    char *reason det_cleanup(freep) = NULL;
    if (strcmp(json_str(why, "reason", ""), "ENDED") != 0)
        return;
    if (trial > 0 && cli_get(c, &t, &err, "/trials/%" PRId64, trial) == 0 &&
        strcmp(json_str(json_obj(t, "trial"), "state", ""), "STATE_ERROR") == 0)
        reason = trial_reason(c, trial);
    else if (trial == 0 && experiment_get(c, exp, &e, &err) == 0)
        reason = experiment_reason(c, e);
    if (!reason)
        return;
    const char *said = json_str(why, "text", ""), *rest = rest_of(reason, said);
    if (rest && *rest)
        printf("In the user's code: %.*s\n", (int)strlen(rest) - 2, rest + 1);
    if (rest)
        return;
    cut_repeated(reason, said);
    if (!strstr(said, reason))
        printf("%s%s\n", trial > 0 ? "Its log says: " : "The log of ", reason);
}

/* Whoever types a bare number may mean an experiment, which has a why of its own: which one, else
 * 0.
 */
static int64_t experiment_meant(struct cli *c, const char *what, int64_t trials_experiment)
{
    struct det_err err;
    JSON_OWN e = NULL;
    bool is_bare = strspn(what, "0123456789") == strlen(what);
    int64_t id = is_bare ? strtoll(what, NULL, 10) : 0;
    return id > 0 && id != trials_experiment && experiment_get(c, id, &e, &err) == 0 ? id : 0;
}

/* Of a master that answers, and says that there is none. */
static int fail_absent(struct cli *c, const char *what, struct det_err *err)
{
    if (err->code != DET_ENOENT)
        return CLI_FAILED;
    int64_t id = experiment_meant(c, what, 0);
    if (id > 0)
        det_fail(err, DET_ENOENT, "trial %s not found; of experiment %s:  det why exp:%s", what,
                 what, what);
    return CLI_FAILED;
}

static int explain_waiting(struct cli *c, struct det_err *err)
{
    JSON_OWN answer = NULL;
    const char *what = cli_arg(c, 0);
    det_cleanup(freep) char *path = path_of(what, err);
    if (!path)
        return CLI_USAGE;
    if (cli_get(c, &answer, err, "%s", path) < 0)
        return fail_absent(c, what, err);
    if (cli_print_json(c, answer))
        return 0;
    print_why(answer);
    print_failure(c, answer);
    int64_t other = experiment_meant(c, what, json_int(answer, "experimentId", 0));
    if (other > 0)
        printf("\nThere is an experiment %" PRId64 " too:  det why exp:%" PRId64 "\n", other,
               other);
    return 0;
}

static const struct verb verbs[] = {
    {"", NULL, "ID", "what a trial (12), an experiment (exp:3) or a job (its UUID) waits for", NULL,
     explain_waiting},
    {0},
};

const struct noun noun_why = {"why", "", NULL, "why something waits, and what would help", verbs};
