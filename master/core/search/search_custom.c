/*
 * custom search (docs/contract/search.md 7): no decisions of its own. What happens is queued as
 * events with ids from 1, in the form the client sees; the client posts operations and acknowledges
 * events with them. The queue is part of the state and of its snapshots.
 */
#include "search_impl.h"

#include "length.h"
#include "mistakes.h"
#include "wire.h"
#include <string.h>

enum {
    TRIAL_SEED = 42,
    /* With so many events waiting, progress is left out: it changes no decision. */
    PROGRESS_WAITING_MAX = 10000
};

/* One operation of a client, taken apart. */
struct custom_op {
    enum { OP_CREATE, OP_VALIDATE_AFTER, OP_CLOSE, OP_SHUTDOWN, OP_PROGRESS } kind;
    char request_id[UUID_STR_MAX];
    json_t *hparams;      /* new reference */
    const json_t *reason; /* to close; borrowed, NULL: none */
    int64_t length;
    bool cancel, failure;
    double progress;
};

static int custom_init(struct search *s, struct det_err *err)
{
    (void)err;
    s->queue = json_array();
    return 0;
}

static void enqueue_event(struct search *s, const char *what, json_t *about)
{
    json_t *ev = json_object();
    json_set(ev, "id", json_integer(++s->last_event));
    json_set(ev, what, about);
    json_array_append_new(s->queue, ev);
}

static json_t *about_trial(const struct search *s, size_t k)
{
    return json_make("{s:s}", "requestId", s->trials.v[k].request_id);
}

static void on_initial(struct search *s, struct search_ops *out)
{
    (void)out;
    enqueue_event(s, "initialOperations", json_object());
}

static void on_validated(struct search *s, size_t k, const struct search_event *ev,
                         struct search_ops *out)
{
    (void)out;
    json_t *j = about_trial(s, k);
    json_set(j, "metric", ev->value ? json_deep_copy(ev->value) : json_double(ev->metric));
    json_set(j, "validateAfterLength", json_i64s(ev->length));
    enqueue_event(s, "validationCompleted", j);
}

/* A crash has no name of its own in this enum. */
static const char *exit_name(enum search_exit why)
{
    switch (why) {
    case SEARCH_INVALID_HP:
    case SEARCH_INIT_INVALID_HP: return "EXITED_REASON_INVALID_HP";
    case SEARCH_USER_STOP: return "EXITED_REASON_USER_REQUESTED_STOP";
    case SEARCH_USER_CANCELED: return "EXITED_REASON_USER_CANCELED";
    case SEARCH_ERRORED:
    case SEARCH_EXIT_COUNT: break;
    }
    return "EXITED_REASON_UNSPECIFIED";
}

static void on_exited(struct search *s, size_t k, enum search_exit why, struct search_ops *out)
{
    (void)out;
    json_t *j = about_trial(s, k);
    json_set(j, "exitedReason", json_string(exit_name(why)));
    enqueue_event(s, "trialExitedEarly", j);
}

static void on_closed(struct search *s, size_t k, struct search_ops *out)
{
    (void)out;
    enqueue_event(s, "trialClosed", about_trial(s, k));
}

static void on_progress(struct search *s, const struct search_event *ev)
{
    size_t k = search_trial_find(s, ev->request_id);
    if (s->trials.v[k].closed || json_array_size(s->queue) >= PROGRESS_WAITING_MAX)
        return;
    json_t *j = about_trial(s, k);
    json_set(j, "partialUnits", json_double(ev->units));
    enqueue_event(s, "trialProgress", j);
}

/* ---- operations ---- */

static int read_id(const json_t *j, struct custom_op *op, struct det_err *err)
{
    const char *id = json_string_value(wire_get(j, "requestId"));
    if (!id || !uuid_is_valid(id))
        return det_fail(err, DET_EINVAL, "requestId: expected a UUID");
    for (size_t i = 0; i < UUID_STR_MAX; i++)
        op->request_id[i] = (char)(id[i] >= 'A' && id[i] <= 'F' ? id[i] - 'A' + 'a' : id[i]);
    return 0;
}

static int read_create(const json_t *j, struct custom_op *op, struct det_err *err)
{
    const char *text = json_string_value(wire_get(j, "hyperparams"));
    int rc = read_id(j, op, err);
    if (rc < 0)
        return rc;
    op->hparams = text ? json_parse(text, strlen(text), err) : NULL;
    if (!json_is_object(op->hparams)) {
        json_decref(op->hparams);
        return det_fail(err, DET_EINVAL,
                        "createTrial.hyperparams: expected JSON text of an object");
    }
    return 0;
}

static int read_validate(const json_t *trial_op, struct custom_op *op, struct det_err *err)
{
    const json_t *j = wire_get(trial_op, "validateAfter"), *length = wire_get(j, "length");
    int rc = read_id(j, op, err);
    if (rc == 0 && !length)
        rc = det_fail(err, DET_EINVAL, "validateAfter.length: missing");
    if (rc == 0)
        rc = wire_i64(length, "validateAfter.length", &op->length, err);
    if (rc == 0 && (op->length < 1 || op->length > LENGTH_MAX))
        rc = det_fail(err, DET_EINVAL, "validateAfter.length: expected 1 to %lld",
                      (long long)LENGTH_MAX);
    return rc;
}

static int read_progress(const json_t *j, struct custom_op *op, struct det_err *err)
{
    const json_t *v = wire_get(j, "progress");
    int rc = v ? wire_f64(v, "setSearcherProgress.progress", &op->progress, err) : 0;
    if (rc == 0 && !(op->progress >= 0 && op->progress <= 1))
        rc = det_fail(err, DET_EINVAL, "setSearcherProgress.progress: expected 0 to 1");
    return rc;
}

static int read_operation(const json_t *j, struct custom_op *op, struct det_err *err)
{
    static const char *const names[] = {"createTrial", "trialOperation", "closeTrial", "shutDown",
                                        "setSearcherProgress"};
    const json_t *v = NULL;
    *op = (struct custom_op){0};
    for (int i = 0; i <= OP_PROGRESS && !v; i++)
        if ((v = wire_get(j, names[i])))
            op->kind = i;
    if (!json_is_object(v))
        return det_fail(err, DET_EINVAL,
                        "expected one of createTrial, trialOperation, closeTrial, shutDown and "
                        "setSearcherProgress, an object");
    switch (op->kind) {
    case OP_CREATE: return read_create(v, op, err);
    case OP_VALIDATE_AFTER: return read_validate(v, op, err);
    case OP_CLOSE: op->reason = wire_get(v, "reason"); return read_id(v, op, err);
    case OP_PROGRESS: return read_progress(v, op, err);
    case OP_SHUTDOWN:
        op->cancel = json_is_true(wire_get(v, "cancel"));
        op->failure = json_is_true(wire_get(v, "failure"));
    }
    return 0;
}

int search_check_operation(const json_t *operation, struct det_err *err)
{
    struct custom_op op;
    int rc = read_operation(operation, &op, err);
    if (rc == 0)
        json_decref(op.hparams);
    return rc;
}

static void create_trial(struct search *s, struct custom_op *op, struct search_ops *out)
{
    if (search_trial_find(s, op->request_id) != SEARCH_NO_TRIAL) {
        json_decref(op->hparams);
        return;
    }
    size_t k = search_trial_add(s, op->request_id);
    struct search_op *made = search_push(s, out, SEARCH_CREATE, k);
    made->hparams = op->hparams;
    made->trial_seed = TRIAL_SEED;
    enqueue_event(s, "trialCreated", about_trial(s, k));
}

static void shut_down(struct search *s, const struct custom_op *op, struct search_ops *out)
{
    s->shut = true;
    struct search_op *made = search_push(s, out, SEARCH_SHUTDOWN, SEARCH_NO_TRIAL);
    made->cancel = op->cancel;
    made->failure = op->failure;
}

/* Whatever a client says, its trial is closed: a reason that is too long is cut, what is no text is
 * none. It stands in a sentence, which has its own end. */
static json_t *shown_reason(const json_t *j)
{
    static const char space[] = " \t\r\n";
    const char *text = json_string_value(j);
    if (!text)
        return NULL;
    text += strspn(text, space);
    size_t n = strlen(text);
    while (n > 0 && strchr(". \t\r\n", text[n - 1]))
        n--;
    det_cleanup(freep) char *bare = det_strndup(text, n);
    struct buf b = BUF_INIT;
    mistakes_quote(&b, bare, SEARCH_REASON_MAX);
    json_t *reason = n > 0 ? json_string(buf_str(&b)) : NULL;
    buf_finish(&b);
    return reason;
}

/* What is about trials that are not there, or were told to close, is passed over. */
static void carry_out(struct search *s, struct custom_op *op, struct search_ops *out)
{
    size_t k = search_trial_find(s, op->request_id);
    bool is_open = k != SEARCH_NO_TRIAL && !s->trials.v[k].done && !s->trials.v[k].closed;
    if (op->kind == OP_CREATE)
        create_trial(s, op, out);
    else if (op->kind == OP_PROGRESS)
        s->progress = op->progress;
    else if (op->kind == OP_SHUTDOWN)
        shut_down(s, op, out);
    else if (op->kind == OP_VALIDATE_AFTER && is_open)
        search_validate_after(s, out, k, op->length);
    else if (op->kind == OP_CLOSE && is_open)
        search_close(s, out, k)->reason = shown_reason(op->reason);
}

static int64_t id_at(const struct search *s, size_t i)
{
    return json_int(json_array_get(s->queue, i), "id", 0);
}

static void acknowledge_events(struct search *s, int64_t id)
{
    size_t n = 0;
    while (n < json_array_size(s->queue) && id_at(s, n) <= id)
        n++;
    json_t *rest = json_array();
    for (size_t i = n; i < json_array_size(s->queue); i++)
        json_array_append(rest, json_array_get(s->queue, i));
    json_decref(s->queue);
    s->queue = rest;
}

static void on_client(struct search *s, const struct search_event *ev, struct search_ops *out)
{
    if (ev->kind == SEARCH_EV_PROGRESS) {
        on_progress(s, ev);
        return;
    }
    acknowledge_events(s, ev->ack);
    for (size_t i = 0; i < json_array_size(ev->operations) && !s->shut; i++) {
        struct custom_op op;
        if (read_operation(json_array_get(ev->operations, i), &op, NULL) == 0)
            carry_out(s, &op, out);
    }
}

int search_check_ack(const struct search *s, int64_t id, struct det_err *err)
{
    for (size_t i = 0; i < json_array_size(s->queue); i++)
        if (id_at(s, i) == id)
            return 0;
    return det_fail(err, DET_EINVAL,
                    "triggeredByEvent.id: no event %lld waits to be acknowledged; fetch "
                    "searcher_events again",
                    (long long)id);
}

const json_t *search_undelivered(const struct search *s)
{
    return s->queue;
}

static double tell_progress(const struct search *s)
{
    return s->progress;
}

static json_t *save_queue(const struct search *s)
{
    return json_make("{s:o, s:I, s:f}", "queue", json_copy(s->queue), "last_event",
                     (json_int_t)s->last_event, "progress", s->progress);
}

static int load_queue(struct search *s, const json_t *j, struct det_err *err)
{
    json_t *queue = json_arr(j, "queue");
    if (!queue)
        return det_fail(err, DET_ECORRUPT, "searcher snapshot: no queue of events");
    json_decref(s->queue);
    s->queue = json_copy(queue);
    s->last_event = json_int(j, "last_event", 0);
    s->progress = json_num(j, "progress", 0);
    return 0;
}

const struct search_method search_custom = {.name = "custom",
                                            .is_custom = true,
                                            .init = custom_init,
                                            .initial = on_initial,
                                            .validated = on_validated,
                                            .exited = on_exited,
                                            .closed = on_closed,
                                            .client = on_client,
                                            .progress = tell_progress,
                                            .save = save_queue,
                                            .load = load_queue};
