/*
 * Rows as a database may have them after anything: a line each, a JSON object of the columns. What
 * the core takes of them makes a sound core, which goes on and ends what it has; what it refuses
 * costs the experiment that it is of and no other, as at a master's start.
 */
#include "core.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS_MAX = 60, TRIALS_MAX = 10000 };

struct rows {
    json_t *v[ROWS_MAX];
    size_t n;
    int64_t parked[ROWS_MAX]; /* experiments that are passed over */
    size_t parked_n;
};

/* A column of JSON, as text; one of text as it is. NULL: null. */
static const char *text_of(const json_t *row, const char *column, char **ret)
{
    const json_t *j = json_object_get(row, column);
    if (!j || json_is_null(j))
        return NULL;
    *ret = json_is_string(j) ? det_strdup(json_string_value(j)) : json_text(j);
    return *ret;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static int state_of(const json_t *row, int count)
{
    return (int)((uint64_t)json_int(row, "state", 0) % (uint64_t)count);
}

static bool is(const json_t *row, const char *kind)
{
    return strcmp(json_str(row, "row", ""), kind) == 0;
}

static int64_t experiment_of(const json_t *row)
{
    return json_int(row, is(row, "experiment") ? "id" : "experiment", 0);
}

static int put_experiment(struct core *c, const json_t *j, struct det_err *err)
{
    det_cleanup(freep) char *config = NULL, *core = NULL;
    struct row_experiment r = {
        .id = json_int(j, "id", 0),
        .job_id = "job",
        .owner_id = json_int(j, "owner", 1),
        .config = or_empty(text_of(j, "config", &config)),
        .state = (enum exp_state)state_of(j, EXP_STATE_COUNT),
        .progress = json_num(j, "progress", -1),
        .resource_pool = json_str(j, "pool", ""),
        .priority = (int)json_int(j, "priority", 0),
        .weight = json_num(j, "weight", 1),
        .max_slots = json_int(j, "max_slots", -1),
        .queue_position = json_num(j, "position", 0),
        .core = or_empty(text_of(j, "core", &core)),
    };
    bool is_read = !exp_state_is_terminal(r.state) || r.state == EXP_DELETING;
    return is_read ? core_restore_experiment(c, &r, err) : 0;
}

/* Names are not JSON, and the tables have each once. */
static char *task_of(int64_t exp_id, int64_t trial_id)
{
    return det_asprintf("%lld.%lld", (long long)exp_id, (long long)trial_id);
}

static int put_trial(struct core *c, const json_t *j, struct det_err *err)
{
    det_cleanup(freep) char *hparams = NULL, *core = NULL;
    det_cleanup(freep) char *task = task_of(experiment_of(j), json_int(j, "id", 0));
    struct row_trial r = {
        .id = json_int(j, "id", 0),
        .experiment_id = json_int(j, "experiment", 0),
        .request_id = json_str(j, "request", ""),
        .task_id = task,
        .hparams = or_empty(text_of(j, "hparams", &hparams)),
        .warm_start_checkpoint = json_str(j, "warm_start", NULL),
        .state = (enum trial_state)state_of(j, TRIAL_STATE_COUNT),
        .run_id = json_int(j, "run", 0),
        .restarts = json_int(j, "restarts", 0),
        .core = or_empty(text_of(j, "core", &core)),
        .latest_checkpoint = json_str(j, "latest", NULL),
        .latest_steps = json_int(j, "steps", 0),
    };
    return core_restore_trial(c, &r, err);
}

static int put_allocation(struct core *c, const json_t *j, struct det_err *err)
{
    det_cleanup(freep) char *core = NULL;
    det_cleanup(freep) char *task = task_of(experiment_of(j), json_int(j, "trial", 0));
    det_cleanup(freep) char *id = det_asprintf("%s.%lld", task, (long long)json_int(j, "run", 0));
    struct row_allocation r = {
        .id = id,
        .task_id = task,
        .experiment_id = json_int(j, "experiment", 0),
        .trial_id = json_int(j, "trial", 0),
        .run_id = json_int(j, "run", 0),
        .kind = json_str(j, "kind", ""),
        .slots = json_int(j, "slots", 0),
        .resource_pool = json_str(j, "pool", ""),
        .state = (enum alloc_state)state_of(j, ALLOC_STATE_COUNT),
        .is_ready = json_flag(j, "ready", false),
        .core = or_empty(text_of(j, "core", &core)),
    };
    return r.state == ALLOC_TERMINATED ? 0 : core_restore_allocation(c, &r, err);
}

static int put_search(struct core *c, const json_t *j, struct det_err *err)
{
    det_cleanup(freep) char *text = NULL;
    int64_t exp_id = experiment_of(j), seq = json_int(j, "seq", 0);
    const char *column = or_empty(text_of(j, is(j, "event") ? "event" : "snapshot", &text));
    if (is(j, "event"))
        return core_restore_search_event(
            c, &(struct row_search_event){.experiment_id = exp_id, .seq = seq, .event = column},
            err);
    return core_restore_search_snapshot(
        c, &(struct row_search_snapshot){.experiment_id = exp_id, .seq = seq, .snapshot = column},
        err);
}

/* A setting that cannot be read is left out. */
static void put_setting(struct core *c, const json_t *j)
{
    struct det_err err = {0};
    det_cleanup(freep) char *text = NULL, *forced = NULL;
    struct row_agent agent = {.agent_id = json_str(j, "agent", ""),
                              .enabled = json_flag(j, "enabled", true),
                              .draining = json_flag(j, "draining", false)};
    struct row_store store = {.place = json_str(j, "place", ""),
                              .id = json_str(j, "id", NULL),
                              .made_on = json_str(j, "made_on", NULL)};
    if (is(j, "agent")) {
        agent.slots_disabled = or_empty(text_of(j, "off", &text));
        agent.slots_forced = json_object_get(j, "forced") ? text_of(j, "forced", &forced) : "[]";
        det_ignore(core_restore_agent(c, &agent, &err), "whatever it says, nothing breaks");
    } else if (is(j, "store")) {
        store.known = text_of(j, "known", &text);
        det_ignore(core_restore_store(c, &store, &err), "whatever it says, nothing breaks");
    }
}

static const struct {
    const char *kind;
    int (*put)(struct core *c, const json_t *row, struct det_err *err);
} kinds[] = {
    /* in the order in which a master reads them */
    {"experiment", put_experiment}, {"snapshot", put_search},       {"event", put_search},
    {"trial", put_trial},           {"allocation", put_allocation},
};

static bool is_parked(const struct rows *r, const json_t *row)
{
    for (size_t i = 0; i < r->parked_n; i++)
        if (r->parked[i] == experiment_of(row))
            return true;
    return false;
}

/* The row that is refused, or NULL. */
static const json_t *put_all(struct core *c, const struct rows *r)
{
    for (size_t i = 0; i < r->n; i++)
        put_setting(c, r->v[i]);
    for (size_t k = 0; k < DET_ARRAY_LEN(kinds); k++)
        for (size_t i = 0; i < r->n; i++) {
            struct det_err err = {0};
            if (!is(r->v[i], kinds[k].kind) || is_parked(r, r->v[i]) ||
                kinds[k].put(c, r->v[i], &err) == 0)
                continue;
            if (!*err.text)
                abort();
            return r->v[i];
        }
    return NULL;
}

static struct core *rebuild(struct rows *r)
{
    for (;;) {
        struct core_options o = core_options_default;
        o.default_pool = "default";
        struct core *c = core_create(&o);
        core_set_life(c, 2, "nonce");
        const json_t *refused = put_all(c, r);
        if (!refused)
            return c;
        core_destroy(c);
        r->parked[r->parked_n++] = experiment_of(refused);
    }
}

static void step(struct core *c, struct core_event ev)
{
    struct core_effects fx = CORE_EFFECTS_INIT;
    core_step(c, &ev, &fx);
    core_effects_finish(&fx);
}

/* Leases end, runs begin anew, and everybody takes back what he asked for. A trial that lost what
 * it has to do may wait in between, which core_check() would not have. */
static void go_on(struct core *c, const struct rows *r)
{
    struct core_effects fx = CORE_EFFECTS_INIT;
    core_restored(c, 1000, 1, &fx);
    core_effects_finish(&fx);
    core_check(c);
    struct core_slot_in slots[2] = {{.id = 0, .type = CORE_CPU, .brand = "", .uuid = ""},
                                    {.id = 1, .type = CORE_CPU, .brand = "", .uuid = ""}};
    struct core_event hello = {.kind = CORE_EV_AGENT_HELLO, .now_ms = 2000, .agent_id = "a"};
    hello.hello = (struct core_hello){
        .version = "", .pool = "", .addr = "", .slots = slots, .slots_n = DET_ARRAY_LEN(slots)};
    step(c, hello);
    step(c, (struct core_event){.kind = CORE_EV_TICK, .now_ms = 100000});
    for (size_t i = 0; i < r->n; i++)
        if (is(r->v[i], "experiment"))
            step(c, (struct core_event){.kind = CORE_EV_EXP_KILL,
                                        .now_ms = 100000,
                                        .exp_id = experiment_of(r->v[i])});
    core_check(c);
    step(c, (struct core_event){.kind = CORE_EV_TICK, .now_ms = 200000});
    core_check(c);
}

static bool is_small(const json_t *j)
{
    const json_t *search = json_obj(json_obj(j, "config"), "searcher");
    return json_int(search, "max_trials", 1) <= TRIALS_MAX;
}

static void add_line(struct rows *r, const char *text, size_t n)
{
    json_t *j = r->n < ROWS_MAX ? json_parse(text, n, NULL) : NULL;
    if (json_is_object(j) && is_small(j))
        r->v[r->n++] = j;
    else
        json_decref(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rows r = {.n = 0};
    const char *text = (const char *)data, *end = text + size;
    for (const char *at = text; at < end;) {
        const char *eol = memchr(at, '\n', (size_t)(end - at));
        eol = eol ? eol : end;
        add_line(&r, at, (size_t)(eol - at));
        at = eol + 1;
    }
    struct core *c = rebuild(&r);
    go_on(c, &r);
    core_destroy(c);
    for (size_t i = 0; i < r.n; i++)
        json_decref(r.v[i]);
    return 0;
}
