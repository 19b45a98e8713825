#include "rowtable.h"

#include "clk.h"
#include "mem.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define C(member) offsetof(struct row_agent, member), sizeof(((struct row_agent *)0)->member)
static const struct row_column agent[] = {
    {"agent_id", "text", COL_TEXT, COL_KEY, C(agent_id)},
    {"enabled", "boolean", COL_BOOL, COL_CHANGES, C(enabled)},
    {"draining", "boolean", COL_BOOL, COL_CHANGES, C(draining)},
    {"slots_disabled", "jsonb", COL_TEXT, COL_CHANGES, C(slots_disabled)},
    {"slots_forced", "jsonb", COL_TEXT, COL_CHANGES, C(slots_forced)},
};
#undef C

#define C(member) offsetof(struct row_store, member), sizeof(((struct row_store *)0)->member)
static const struct row_column store[] = {
    {"place", "text", COL_TEXT, COL_KEY, C(place)},
    {"id", "uuid", COL_TEXT, COL_CHANGES, C(id)},
    {"known", "jsonb", COL_TEXT, COL_CHANGES, C(known)},
    {"made_on", "text", COL_TEXT, COL_CHANGES, C(made_on)},
    {"owner_id", "integer", COL_I64_OR_0, COL_ONCE, C(owner_id)},
    {"first_used", "timestamptz", COL_TIME, COL_ONCE, C(used_us)},
};
#undef C

#define C(member)                                                                                  \
    offsetof(struct row_experiment, member), sizeof(((struct row_experiment *)0)->member)
static const struct row_column experiment[] = {
    {"id", "integer", COL_I64, COL_KEY, C(id)},
    {"job_id", "text", COL_TEXT, COL_ONCE, C(job_id)},
    {"owner_id", "integer", COL_I64, COL_ONCE, C(owner_id)},
    {"project_id", "integer", COL_I64, COL_ONCE, C(project_id)},
    {"parent_id", "integer", COL_I64_OR_0, COL_ONCE, C(parent_id)},
    {"start_time", "timestamptz", COL_TIME, COL_ONCE, C(start_us)},
    {"config", "jsonb", COL_TEXT, COL_GIVEN, C(config)},
    {"state", "text", COL_EXP_STATE, COL_CHANGES, C(state)},
    {"end_time", "timestamptz", COL_TIME, COL_CHANGES, C(end_us)},
    {"progress", "float8", COL_F64_OR_NEG, COL_CHANGES, C(progress)},
    {"resource_pool", "text", COL_TEXT, COL_CHANGES, C(resource_pool)},
    {"priority", "integer", COL_I64_OR_0, COL_CHANGES, C(priority)},
    {"weight", "float8", COL_F64, COL_CHANGES, C(weight)},
    {"max_slots", "integer", COL_I64_OR_NEG, COL_CHANGES, C(max_slots)},
    {"queue_position", "float8", COL_F64, COL_CHANGES, C(queue_position)},
    {"core", "jsonb", COL_TEXT, COL_CHANGES, C(core)},
};
#undef C

#define C(member)                                                                                  \
    offsetof(struct row_search_snapshot, member), sizeof(((struct row_search_snapshot *)0)->member)
static const struct row_column search_snapshot[] = {
    {"experiment_id", "integer", COL_I64, COL_KEY, C(experiment_id)},
    {"seq", "bigint", COL_I64, COL_CHANGES, C(seq)},
    {"snapshot", "json", COL_TEXT, COL_CHANGES, C(snapshot)},
};
#undef C

#define C(member)                                                                                  \
    offsetof(struct row_search_event, member), sizeof(((struct row_search_event *)0)->member)
static const struct row_column search_event[] = {
    {"experiment_id", "integer", COL_I64, COL_KEY, C(experiment_id)},
    {"seq", "bigint", COL_I64, COL_KEY, C(seq)},
    {"event", "json", COL_TEXT, COL_ONCE, C(event)},
};
#undef C

#define C(member) offsetof(struct row_trial, member), sizeof(((struct row_trial *)0)->member)
static const struct row_column trial[] = {
    {"id", "integer", COL_I64, COL_KEY, C(id)},
    {"experiment_id", "integer", COL_I64, COL_ONCE, C(experiment_id)},
    {"request_id", "text", COL_TEXT, COL_ONCE, C(request_id)},
    {"task_id", "text", COL_TEXT, COL_ONCE, C(task_id)},
    {"hparams", "jsonb", COL_TEXT, COL_GIVEN, C(hparams)},
    {"seed", "bigint", COL_I64, COL_ONCE, C(seed)},
    {"start_time", "timestamptz", COL_TIME, COL_ONCE, C(start_us)},
    {"warm_start_checkpoint", "text", COL_TEXT, COL_ONCE, C(warm_start_checkpoint)},
    {"state", "text", COL_TRIAL_STATE, COL_CHANGES, C(state)},
    {"run_id", "integer", COL_I64, COL_CHANGES, C(run_id)},
    {"restarts", "integer", COL_I64, COL_CHANGES, C(restarts)},
    {"end_time", "timestamptz", COL_TIME, COL_CHANGES, C(end_us)},
    {"core", "jsonb", COL_TEXT, COL_CHANGES, C(core)},
    {"latest_checkpoint", "text", COL_TEXT, COL_READ, C(latest_checkpoint)},
    {"latest_steps", "integer", COL_I64, COL_READ, C(latest_steps)},
};
#undef C

#define C(member)                                                                                  \
    offsetof(struct row_allocation, member), sizeof(((struct row_allocation *)0)->member)
static const struct row_column allocation[] = {
    {"id", "text", COL_TEXT, COL_KEY, C(id)},
    {"task_id", "text", COL_TEXT, COL_ONCE, C(task_id)},
    {"experiment_id", "integer", COL_I64, COL_ONCE, C(experiment_id)},
    {"trial_id", "integer", COL_I64_OR_0, COL_ONCE, C(trial_id)},
    {"run_id", "integer", COL_I64, COL_ONCE, C(run_id)},
    {"kind", "text", COL_TEXT, COL_ONCE, C(kind)},
    {"slots", "integer", COL_I64, COL_ONCE, C(slots)},
    {"resource_pool", "text", COL_TEXT, COL_ONCE, C(resource_pool)},
    {"start_time", "timestamptz", COL_TIME, COL_ONCE, C(start_us)},
    {"state", "text", COL_ALLOC_STATE, COL_CHANGES, C(state)},
    {"is_ready", "boolean", COL_BOOL, COL_CHANGES, C(is_ready)},
    {"placed_time", "timestamptz", COL_TIME, COL_CHANGES, C(placed_us)},
    {"end_time", "timestamptz", COL_TIME, COL_CHANGES, C(end_us)},
    {"exit_reason", "text", COL_TEXT, COL_CHANGES, C(exit_reason)},
    {"status_code", "integer", COL_I64_OR_NEG, COL_CHANGES, C(status_code)},
    {"core", "jsonb", COL_TEXT, COL_CHANGES, C(core)},
};
#undef C

const struct row_table row_tables[ROW_KIND_COUNT] = {
    [ROW_AGENT] = {"agent", agent, DET_ARRAY_LEN(agent)},
    [ROW_STORE] = {"store", store, DET_ARRAY_LEN(store)},
    [ROW_EXPERIMENT] = {"experiment", experiment, DET_ARRAY_LEN(experiment)},
    [ROW_SEARCH_SNAPSHOT] = {"search snapshot", search_snapshot, DET_ARRAY_LEN(search_snapshot)},
    [ROW_SEARCH_EVENT] = {"search event", search_event, DET_ARRAY_LEN(search_event)},
    [ROW_TRIAL] = {"trial", trial, DET_ARRAY_LEN(trial)},
    [ROW_ALLOCATION] = {"allocation", allocation, DET_ARRAY_LEN(allocation)},
};

size_t rowtable_written(enum row_kind kind, bool is_new,
                        const struct row_column *ret[ROW_COLUMNS_MAX])
{
    static const enum row_when first[] = {COL_KEY, COL_CHANGES, COL_ONCE, COL_READ};
    const struct row_table *t = &row_tables[kind];
    size_t n = 0;
    for (int part = 0; part < (is_new ? 3 : 2); part++)
        for (size_t i = 0; i < t->n; i++)
            if (t->v[i].when >= first[part] && t->v[i].when < first[part + 1])
                ret[n++] = &t->v[i];
    return n;
}

static int64_t integer_of(const struct row_column *c, const void *row)
{
    const char *at = (const char *)row + c->at;
    return c->size == sizeof(int) ? *(const int *)at : *(const int64_t *)at;
}

static const char *f64_text(double v, char num[ROW_TEXT_MAX])
{
    snprintf(num, ROW_TEXT_MAX, "%.17g", v); /* "nan", "inf": PostgreSQL reads both */
    return num;
}

static const char *i64_text(int64_t v, char num[ROW_TEXT_MAX])
{
    snprintf(num, ROW_TEXT_MAX, "%" PRId64, v);
    return num;
}

static const char *time_text(int64_t us, char num[ROW_TEXT_MAX])
{
    _Static_assert((int)ROW_TEXT_MAX >= (int)CLK_RFC3339_MAX, "a time fits");
    clk_format(us, num);
    return num;
}

static bool is_null(const struct row_column *c, const void *row)
{
    if (c->type == COL_TIME || c->type == COL_I64_OR_0)
        return integer_of(c, row) == 0;
    if (c->type == COL_F64_OR_NEG)
        return *(const double *)((const char *)row + c->at) < 0;
    return c->type == COL_I64_OR_NEG && integer_of(c, row) < 0;
}

const char *rowtable_text(const struct row_column *c, const void *row, char num[ROW_TEXT_MAX])
{
    const void *at = (const char *)row + c->at;
    if (is_null(c, row))
        return NULL;
    switch (c->type) {
    case COL_TEXT: return *(const char *const *)at;
    case COL_F64:
    case COL_F64_OR_NEG: return f64_text(*(const double *)at, num);
    case COL_BOOL: return *(const bool *)at ? "t" : "f";
    case COL_TIME: return time_text(integer_of(c, row), num);
    case COL_EXP_STATE: return exp_state_text(*(const enum exp_state *)at);
    case COL_TRIAL_STATE: return trial_state_text(*(const enum trial_state *)at);
    case COL_ALLOC_STATE: return alloc_state_text(*(const enum alloc_state *)at);
    case COL_I64:
    case COL_I64_OR_0:
    case COL_I64_OR_NEG: break;
    }
    return i64_text(integer_of(c, row), num);
}

bool rowtable_is_number(const struct row_column *c)
{
    return c->type == COL_BOOL || (c->type >= COL_I64 && c->type <= COL_F64_OR_NEG);
}

static void put_integer(const struct row_column *c, void *at, int64_t v)
{
    if (c->size == sizeof(int))
        *(int *)at = (int)v;
    else
        *(int64_t *)at = v;
}

bool rowtable_put(const struct row_column *c, void *row, const char *text)
{
    bool can_be_negative = c->type != COL_I64_OR_NEG && c->type != COL_F64_OR_NEG;
    const char *number = text ? text : can_be_negative ? "0" : "-1";
    void *at = (char *)row + c->at;
    switch (c->type) {
    case COL_TEXT: *(const char **)at = text; return true;
    case COL_F64:
    case COL_F64_OR_NEG: *(double *)at = strtod(number, NULL); return true;
    case COL_BOOL: *(bool *)at = number[0] == 't'; return true;
    case COL_EXP_STATE: return exp_state_parse(text, at);
    case COL_TRIAL_STATE: return trial_state_parse(text, at);
    case COL_ALLOC_STATE: return alloc_state_parse(text, at);
    case COL_TIME:
    case COL_I64:
    case COL_I64_OR_0:
    case COL_I64_OR_NEG: break;
    }
    put_integer(c, at, strtoll(number, NULL, 10));
    return true;
}

void rowtable_update(enum row_kind kind, void *row, const void *by)
{
    const struct row_table *t = &row_tables[kind];
    for (size_t i = 0; i < t->n; i++) {
        const struct row_column *c = &t->v[i];
        const char *from = (const char *)by + c->at;
        bool is_given = c->when == COL_GIVEN && *(const char *const *)(const void *)from;
        if (c->when == COL_CHANGES || is_given)
            memcpy((char *)row + c->at, from, c->size);
    }
}

int64_t rowtable_exp_id(enum row_kind kind, const void *row)
{
    const struct row_table *t = &row_tables[kind];
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->v[i].name, kind == ROW_EXPERIMENT ? "id" : "experiment_id") == 0)
            return integer_of(&t->v[i], row);
    return 0;
}
