#include "logpolicy.h"

#include "log.h"
#include "map.h"
#include "pattern.h"
#include "vec.h"

#include <string.h>

enum { EXPERIMENTS_MAX = 256, LINE_MAX_BYTES = 8192 };

struct policy {
    struct pattern *pattern;
    char *text;
    enum core_policy_action action;
};
struct policies {
    VEC(struct policy) list;
};
struct logpolicies {
    struct imap *by_exp; /* -> struct policies */
};

struct logpolicies *logpolicies_create(void)
{
    struct logpolicies *l = det_zalloc(sizeof *l);
    l->by_exp = imap_create();
    return l;
}

static void policies_free(struct policies *p)
{
    for (size_t i = 0; p && i < p->list.n; i++) {
        pattern_destroy(p->list.v[i].pattern);
        free(p->list.v[i].text);
    }
    if (p)
        vec_free(&p->list);
    free(p);
}

static void forget_all(struct logpolicies *l)
{
    uint64_t key;
    void *v;
    for (size_t it = 0; imap_next(l->by_exp, &it, &key, &v);)
        policies_free(v);
    imap_destroy(l->by_exp);
}

void logpolicies_forget(struct logpolicies *l, int64_t exp_id)
{
    policies_free(imap_del(l->by_exp, (uint64_t)exp_id));
}

void logpolicies_destroy(struct logpolicies *l)
{
    if (!l)
        return;
    forget_all(l);
    free(l);
}

static void add_policy(struct policies *p, int64_t exp_id, const json_t *j)
{
    struct det_err err;
    const char *text = json_str(j, "pattern", ""),
               *type = json_str(json_obj(j, "action"), "type", "");
    struct policy new = {.action = strcmp(type, "exclude_node") == 0 ? CORE_EXCLUDE_NODE
                                                                     : CORE_CANCEL_RETRIES};
    if (pattern_compile(text, &new.pattern, &err) < 0) { /* of before they were checked */
        log_warning("a log policy of experiment %lld does nothing: %s", (long long)exp_id,
                    err.text);
        return;
    }
    new.text = det_strdup(text);
    vec_push(&p->list, new);
}

static const struct policies *policies_of(struct logpolicies *l, int64_t exp_id, const json_t *list)
{
    struct policies *p = imap_get(l->by_exp, (uint64_t)exp_id);
    if (p)
        return p;
    if (imap_size(l->by_exp) == EXPERIMENTS_MAX) {
        forget_all(l);
        l->by_exp = imap_create();
    }
    p = det_zalloc(sizeof *p);
    for (size_t i = 0; i < json_array_size(list); i++)
        add_policy(p, exp_id, json_array_get(list, i));
    imap_put(l->by_exp, (uint64_t)exp_id, p);
    return p;
}

static bool same_agent(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* A printed configuration has every pattern in it. */
static bool is_config(const char *text, size_t len)
{
    static const char key[] = "\"log_policies\":";
    return memmem(text, len, key, strlen(key));
}

static bool matches_line(const struct policy *p, const struct db_log_line *line, int64_t *steps)
{
    size_t len = line->log_len < LINE_MAX_BYTES ? line->log_len : LINE_MAX_BYTES;
    while (len > 0 && strchr("\r\n", line->log[len - 1]))
        len--;
    return pattern_find(p->pattern, line->log, len, steps) && !is_config(line->log, line->log_len);
}

struct search {
    const struct db_log_line *lines;
    size_t n, hits_n;
    struct logpolicy_hit *hits;
    int64_t steps;
};

static void search_lines(struct search *s, const struct policy *p)
{
    const struct logpolicy_hit *last = NULL;
    for (size_t i = 0; i < s->n && s->hits_n < LOGPOLICY_HITS_MAX; i++) {
        const struct db_log_line *line = &s->lines[i];
        if (last && same_agent(last->agent_id, line->agent_id))
            continue;
        if (!matches_line(p, line, &s->steps))
            continue;
        s->hits[s->hits_n] = (struct logpolicy_hit){{p->action, p->text}, line->agent_id};
        last = &s->hits[s->hits_n++];
        if (p->action == CORE_CANCEL_RETRIES)
            return;
    }
}

size_t logpolicies_match(struct logpolicies *l, int64_t exp_id, const json_t *policies,
                         const struct db_log_line *lines, size_t n,
                         struct logpolicy_hit ret[LOGPOLICY_HITS_MAX])
{
    if (json_array_size(policies) == 0)
        return 0;
    const struct policies *p = policies_of(l, exp_id, policies);
    struct search s = {.lines = lines, .n = n, .hits = ret, .steps = LOGPOLICY_STEPS};
    for (size_t i = 0; i < p->list.n; i++)
        search_lines(&s, &p->list.v[i]);
    if (s.steps <= 0)
        log_warning("log policies of experiment %lld: matching took too long, some of %zu lines "
                    "were not looked at; simplify the patterns",
                    (long long)exp_id, n);
    return s.hits_n;
}
