#include "batch.h"

#include "edges.h"
#include "park.h"

#include <limits.h>
#include <string.h>

enum { RETRY_MS = 200, DOUBT_TRIES = 2 };
enum { PATIENCE_MAX_MS = 30 * 60000, FORGET_MS = 60 * 60000 };
static const int64_t patience[BATCH_DOUBT_COUNT] = {
    [BATCH_ODD] = 2000, [BATCH_LATE] = BATCH_SINGLY_MS, [BATCH_STRAINED] = 5 * 60000};

static void move_to(struct batch *b, enum batch_state to)
{
    b->state = edges_go(b->core, MACHINE_BATCH, b->state, to);
}

void batch_init(struct batch *b, struct core *core, size_t most)
{
    *b = (struct batch){.core = core, .most = most, .is_up = true};
    b->tail = &b->head;
}

static struct batch_event *pop_event(struct batch_event **head)
{
    struct batch_event *e = *head;
    *head = e->next;
    return e;
}

void batch_finish(struct batch *b)
{
    while (b->refused)
        batch_event_destroy(pop_event(&b->refused));
    while (b->head)
        batch_event_destroy(pop_event(&b->head));
    core_effects_finish(&b->effects);
}

/* PostgreSQL is away, or hangs with a batch in its hands: what waits may be refused now. */
static bool is_blocked(const struct batch *b)
{
    return b->is_stopping || b->state == BATCH_HELD || (b->state == BATCH_IN_FLIGHT && !b->is_up);
}

bool batch_post(struct batch *b, const struct core_event *ev, void *whose)
{
    struct batch_event *e = batch_event_copy(ev, whose);
    e->is_refused = whose && (b->is_stopping || b->state == BATCH_HELD || !b->is_up);
    *b->tail = e;
    b->tail = &e->next;
    b->queued++;
    b->asked += whose != NULL;
    return e->is_refused;
}

void batch_db(struct batch *b, bool is_up, int64_t now_ms)
{
    if (is_up && !b->is_up && b->state == BATCH_HELD)
        b->retry_ms = now_ms;
    b->is_up = is_up;
}

static void end_batches(struct batch *b)
{
    b->is_stopping = b->is_owing = true;
    move_to(b, BATCH_OVER);
}

void batch_stop(struct batch *b)
{
    if (b->state == BATCH_HELD)
        end_batches(b);
    b->is_stopping = true;
}

int64_t batch_turn_ms(const struct batch *b)
{
    if (b->refused || b->is_owing || (b->state == BATCH_IDLE && b->head && !b->is_stopping) ||
        (is_blocked(b) && b->asked))
        return 0;
    return b->state == BATCH_HELD ? b->retry_ms : INT64_MAX;
}

/* What is asked leaves the queue; what comes meanwhile waits for the next turn. */
static void refuse_asked(struct batch *b)
{
    struct batch_event **to = &b->refused;
    while (*to)
        to = &(*to)->next;
    b->tail = &b->head;
    while (*b->tail) {
        struct batch_event *e = *b->tail;
        if (!e->whose) {
            b->tail = &e->next;
            continue;
        }
        *b->tail = e->next;
        b->queued--;
        b->asked--;
        e->next = NULL;
        *to = e;
        to = &e->next;
    }
}

void batch_turn(struct batch *b, int64_t now_ms)
{
    if (is_blocked(b))
        refuse_asked(b);
    if (b->state == BATCH_HELD && b->is_up && b->retry_ms <= now_ms) {
        move_to(b, BATCH_SENDING);
    } else if (b->state == BATCH_HELD && b->retry_ms <= now_ms) {
        b->retry_ms = INT64_MAX;
    } else if (b->state == BATCH_IDLE && b->head && !b->is_stopping) {
        b->done = 0;
        move_to(b, BATCH_GATHERING);
    }
}

/* Rows, and the lines of logs: they are rows as well as something to be told of. */
static bool is_any_written(const struct core_effects *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (CORE_EFFECT_IS_ROW(f->v[i].kind) || f->v[i].kind == CORE_TASK_LOG)
            return true;
    return false;
}

static void send_or_perform(struct batch *b)
{
    b->done = 0;
    move_to(b, b->effects.n > 0 ? BATCH_SENDING : BATCH_PERFORMING);
}

void batch_begin(struct batch *b, struct core_effects *owed)
{
    b->effects = *owed;
    *owed = (struct core_effects)CORE_EFFECTS_INIT;
    send_or_perform(b);
}

static void end_broken(struct batch *b)
{
    b->is_broken = true;
    end_batches(b);
}

static void hold_batch(struct batch *b, int64_t now_ms)
{
    b->is_overdue = true;
    b->retry_ms = now_ms + RETRY_MS;
    move_to(b, BATCH_HELD);
}

/* Once more without the row, until all is taken. */
static void take_out(struct batch *b, const struct core_refusal *r, int64_t now_ms, int64_t now_us)
{
    b->suspect.tries = 0;
    b->is_overdue = b->is_late = false; /* it is another batch by now */
    if (core_refused(b->core, &b->effects, r, now_ms, now_us))
        move_to(b, BATCH_SENDING);
    else
        end_broken(b);
}

/* Once more, each row by itself, to learn which it is. */
static void on_refused(struct batch *b, const struct batch_told *t, int64_t now_ms, int64_t now_us)
{
    if (!b->is_singly) {
        b->is_singly = true;
        move_to(b, BATCH_SENDING);
    } else if (t->row < b->effects.n) {
        take_out(b, &(struct core_refusal){t->row, false, t->words}, now_ms, now_us);
    } else {
        end_broken(b);
    }
}

/* Of the experiment whose row was taken out last, too. */
static bool is_second(const struct batch *b, const struct core_effect *f)
{
    int64_t exp_id = 0, trial_id = 0;
    return park_owner(f, &exp_id, &trial_id) && exp_id == b->doubted_exp;
}

/* Who is parked, and the batch's number, must be written. */
static bool is_row(const struct batch *b, const struct batch_told *t)
{
    return t->row < b->effects.n && b->effects.v[t->row].kind != CORE_SAVE_PARKED;
}

static int64_t patience_ms(const struct batch *b, const struct batch_told *t)
{
    if (!is_row(b, t))
        return t->doubt == BATCH_ODD ? 0 : PATIENCE_MAX_MS;
    const struct core_effect *f = &b->effects.v[t->row];
    int64_t ms = patience[b->suspect.doubt];
    if (is_second(b, f))
        return ms; /* it loses nobody else anything */
    for (int i = 0; i < b->doubted[f->kind] && ms < PATIENCE_MAX_MS; i++)
        ms *= 2;
    return ms < PATIENCE_MAX_MS ? ms : PATIENCE_MAX_MS;
}

/* Counts this failure. A row that fails now for one reason and now for another is waited for as
 * long as the most patient of them allows, from its first failure on. */
static bool is_culprit(struct batch *b, const struct batch_told *t, int64_t now_ms)
{
    size_t row = is_row(b, t) ? t->row : b->effects.n;
    if (b->suspect.tries == 0 || b->suspect.row != row) {
        b->suspect.row = row;
        b->suspect.doubt = t->doubt;
        b->suspect.since_ms = now_ms;
        b->suspect.tries = 0;
    } else if (patience[t->doubt] > patience[b->suspect.doubt]) {
        b->suspect.doubt = t->doubt;
    }
    b->suspect.tries++;
    bool is_enough = b->suspect.tries >= DOUBT_TRIES || !is_row(b, t);
    return is_enough && now_ms - b->suspect.since_ms >= patience_ms(b, t);
}

static void forget_old(struct batch *b, int64_t now_ms)
{
    if (now_ms - b->doubted_ms >= FORGET_MS) {
        b->doubted_exp = 0;
        memset(b->doubted, 0, sizeof b->doubted);
    }
}

/* Of an experiment of many trials, all of which may be as bad, the second ends it. */
static void blame_row(struct batch *b, const struct batch_told *t, int64_t now_ms, int64_t now_us)
{
    b->doubted_ms = now_ms;
    const struct core_effect *f = &b->effects.v[t->row];
    int64_t exp_id = 0, trial_id = 0;
    bool whole = is_second(b, f);
    park_owner(f, &exp_id, &trial_id);
    b->doubted_exp = exp_id ? exp_id : b->doubted_exp;
    b->doubted[f->kind] += b->doubted[f->kind] < UCHAR_MAX;
    take_out(b, &(struct core_refusal){t->row, whole, t->words}, now_ms, now_us);
}

static void on_doubted(struct batch *b, const struct batch_told *t, int64_t now_ms, int64_t now_us)
{
    bool was_singly = b->is_singly;
    b->is_singly = true;
    b->is_late = b->is_late || t->doubt == BATCH_LATE;
    forget_old(b, now_ms);
    if (!was_singly || !is_culprit(b, t, now_ms)) {
        hold_batch(b, now_ms);
    } else if (is_row(b, t)) {
        blame_row(b, t, now_ms, now_us);
    } else {
        end_broken(b);
    }
}

static void on_committed(struct batch *b)
{
    b->number += b->is_numbered;
    b->is_overdue = false;
    b->suspect.tries = 0;
    b->done = 0;
    move_to(b, BATCH_PERFORMING);
}

void batch_tell(struct batch *b, const struct batch_told *t, int64_t now_ms, int64_t now_us)
{
    if (t->answer == BATCH_COMMITTED) {
        on_committed(b);
    } else if (b->is_stopping || t->answer == BATCH_CANCELED) {
        b->is_stopping = true;
        move_to(b, BATCH_OVER); /* never performed: the rows tell the next start what is owed */
    } else if (t->answer == BATCH_AWAY) {
        b->suspect.tries = 0;
        hold_batch(b, now_ms);
    } else if (t->answer == BATCH_REFUSED) {
        on_refused(b, t, now_ms, now_us);
    } else if (t->answer == BATCH_DOUBTED) {
        on_doubted(b, t, now_ms, now_us);
    } else {
        end_broken(b);
    }
}

int64_t batch_limit_ms(const struct batch *b)
{
    return b->is_singly && b->is_late ? BATCH_SINGLY_MS : 0;
}

static struct batch_event *take_event(struct batch *b)
{
    struct batch_event *e = pop_event(&b->head);
    if (!b->head)
        b->tail = &b->head;
    b->queued--;
    b->asked -= e->whose != NULL;
    return e;
}

/* One decision about what starts for all that came together: it looks at everything that waits. */
static struct batch_do gather_next(struct batch *b)
{
    struct batch_event *e = take_event(b);
    b->done++;
    e->ev.more = b->done < b->most && b->head && !b->head->is_refused;
    return (struct batch_do){e->is_refused ? BATCH_DO_REFUSE : BATCH_DO_STEP, .event = e};
}

static struct batch_do perform_next(struct batch *b)
{
    while (b->done < b->effects.n) {
        const struct core_effect *f = &b->effects.v[b->done++];
        if (f->kind == CORE_NOTHING || CORE_EFFECT_IS_ROW(f->kind))
            continue;
        if (b->is_stopping && f->kind != CORE_REPLY)
            continue; /* links and waits have ended; the next start repeats what is owed */
        return (struct batch_do){BATCH_DO_PERFORM, .effect = f};
    }
    b->is_singly = b->is_late = false;
    move_to(b, BATCH_IDLE);
    return (struct batch_do){.kind = BATCH_DO_END};
}

static struct batch_do send_rows(struct batch *b)
{
    b->is_numbered = is_any_written(&b->effects);
    move_to(b, BATCH_IN_FLIGHT);
    return (struct batch_do){.kind = BATCH_DO_COMMIT};
}

struct batch_do batch_next(struct batch *b)
{
    if (b->refused)
        return (struct batch_do){BATCH_DO_REFUSE, .event = pop_event(&b->refused)};
    if (b->state == BATCH_GATHERING && b->done < b->most && b->head)
        return gather_next(b);
    if (b->state == BATCH_GATHERING)
        send_or_perform(b);
    if (b->state == BATCH_SENDING)
        return send_rows(b);
    if (b->state == BATCH_PERFORMING)
        return perform_next(b);
    if (b->state == BATCH_IDLE)
        core_effects_finish(&b->effects);
    if (b->state != BATCH_OVER || !b->is_owing)
        return (struct batch_do){.kind = BATCH_DO_NOTHING};
    b->is_owing = false;
    return (struct batch_do){.kind = b->is_broken ? BATCH_DO_DIE : BATCH_DO_FORGET};
}
