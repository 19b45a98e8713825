#include "search_replay.h"

#include "conf.h"
#include "hash.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct replay {
    const struct search_log *log;
    struct search_verdict *v;
    struct search *s;
    size_t made;
    int64_t seq;
};

static void note_difference(struct replay *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void note_difference(struct replay *p, const char *fmt, ...)
{
    va_list ap;
    if (!p->v->equal)
        return;
    p->v->equal = false;
    p->v->seq = p->seq;
    va_start(ap, fmt);
    vsnprintf(p->v->what, sizeof p->v->what, fmt, ap);
    va_end(ap);
}

/* As json_equal, but 1 and 1.0 are one number: the database writes them its own way. */
static bool is_same(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *v;
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    if (json_is_object(a) && json_object_size(a) == json_object_size(b)) {
        json_object_foreach((json_t *)a, key,
                            v) if (!is_same(v, json_object_get(b, key))) return false;
        return json_is_object(b);
    }
    if (json_is_array(a) && json_array_size(a) == json_array_size(b)) {
        for (size_t i = 0; i < json_array_size(a); i++)
            if (!is_same(json_array_get(a, i), json_array_get(b, i)))
                return false;
        return json_is_array(b);
    }
    return json_equal(a, b);
}

/* The rows may lack the last trials: a search that is stopped makes no more. */
static void check_trial(struct replay *p, const struct search_op *op)
{
    const json_t *row = json_array_get(p->log->trials, p->made++);
    if (!row)
        return;
    long long id = json_integer_value(json_array_get(row, 0));
    const char *request_id = json_string_value(json_array_get(row, 1));
    if (!request_id || strcmp(request_id, op->request_id) != 0)
        note_difference(p, "trial %lld has the request id %s; the replay makes %s", id,
                        request_id ? request_id : "(none)", op->request_id);
    else if (json_integer_value(json_array_get(row, 2)) != op->trial_seed)
        note_difference(p, "trial %lld has another seed than %u, which the replay gives", id,
                        (unsigned)op->trial_seed);
    else if (!is_same(op->hparams, json_array_get(row, 3)))
        note_difference(p, "trial %lld has other hyperparameters than the replay", id);
}

static void check_snapshot(struct replay *p)
{
    if (!p->log->snapshot || p->seq != p->log->snapshot_seq)
        return;
    JSON_OWN now = search_snapshot(p->s);
    det_cleanup(freep) char *a = json_text(now), *b = json_text(p->log->snapshot);
    if (strcmp(a, b) != 0)
        note_difference(p, "the state is not the one of the snapshot taken here");
}

static void play_event(struct replay *p, const struct search_event *ev, const char *digest)
{
    struct search_ops out = {0};
    char text[17];
    search_step(p->s, ev, &out);
    for (size_t i = 0; i < out.ops.n; i++)
        if (out.ops.v[i].kind == SEARCH_CREATE)
            check_trial(p, &out.ops.v[i]);
    search_digest_text(search_ops_digest(&out), text);
    if (digest && strcmp(digest, text) != 0)
        note_difference(
            p, "the replay answers this event with other operations (digest %s, then %.16s)", text,
            digest);
    check_snapshot(p);
    search_ops_finish(&out);
}

static void play_row(struct replay *p, const json_t *row)
{
    int64_t seq = json_integer_value(json_array_get(row, 0));
    const json_t *j = json_array_get(row, 1);
    struct search_event ev;
    struct det_err err = {0};
    if (seq != p->seq + 1)
        note_difference(p, "event %lld follows %lld: the events between were not kept",
                        (long long)seq, (long long)p->seq);
    p->seq = seq;
    if (search_event_from_json(j, &ev, &err) < 0) {
        note_difference(p, "%s", err.text);
        return;
    }
    p->v->events++;
    play_event(p, &ev, json_str(j, "digest", NULL));
}

static void finish_verdict(struct replay *p)
{
    JSON_OWN end = search_snapshot(p->s);
    det_cleanup(freep) char *text = json_text(end);
    char hex[HASH_HEX_MAX];
    hash_bytes(HASH_SHA256, text, strlen(text), hex);
    memcpy(p->v->sha256, hex, sizeof p->v->sha256);
    p->v->trials = (int64_t)p->made;
    if (json_array_size(p->log->trials) > p->made)
        note_difference(p, "there are %zu trials; the replay makes %zu",
                        json_array_size(p->log->trials), p->made);
    if (p->log->snapshot && p->log->snapshot_seq > p->seq)
        note_difference(p, "the snapshot is of event %lld; the log ends before it",
                        (long long)p->log->snapshot_seq);
}

int search_replay(const struct search_log *log, struct search_verdict *ret, struct det_err *err)
{
    struct conf conf;
    struct replay p = {.log = log, .v = ret};
    *ret = (struct search_verdict){.equal = true};
    int rc = conf_read(log->config, &conf, err);
    if (rc == 0)
        rc = search_create(&conf.search, &p.s, err);
    if (rc < 0)
        return rc;
    play_event(&p, &(struct search_event){.kind = SEARCH_EV_INITIAL}, NULL);
    for (size_t i = 0; i < json_array_size(log->events); i++)
        play_row(&p, json_array_get(log->events, i));
    finish_verdict(&p);
    search_destroy(p.s);
    return 0;
}
