#include "tasklife.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define SECONDS       1000
#define TICK_MS       3             /* between two strikes */
#define SLOW_MS       (1 * SECONDS) /* after STRIKES_MANY */
#define STRIKES_MANY  (10 * SECONDS / TICK_MS)
#define LOG_KILLED_MS 300
#define LOG_AFTER_MS  (600 * SECONDS) /* after the master has acknowledged the exit */

#define TO(phase) (1u << (phase))
#define NO_LIMIT  -1

/* Where a phase may lead, and how long it may take. */
static const struct {
    unsigned edges;
    int64_t within_ms;
} phases[TASK_PHASE_COUNT] = {
    [TASK_PREPARING] = {TO(TASK_HOOKING) | TO(TASK_RUNNING) | TO(TASK_KILLING), NO_LIMIT},
    /* From one step to the next; within the stall timeout, anew with each line. */
    [TASK_HOOKING] = {TO(TASK_HOOKING) | TO(TASK_RUNNING) | TO(TASK_KILLING), NO_LIMIT},
    [TASK_RUNNING] = {TO(TASK_TRACING) | TO(TASK_ENDING) | TO(TASK_KILLING), NO_LIMIT},
    [TASK_TRACING] = {TO(TASK_KILLING), 15 * SECONDS}, /* a look has 10 s, and ends by itself */
    [TASK_ENDING] = {TO(TASK_KILLING), 2 * SECONDS},   /* for the others, after one failed */
    [TASK_KILLING] = {TO(TASK_PIPES), 0},              /* to the next strike */
    [TASK_PIPES] = {TO(TASK_REPORTS), 300},
    [TASK_REPORTS] = {TO(TASK_LOG) | TO(TASK_ENDED), NO_LIMIT},
    [TASK_LOG] = {TO(TASK_ENDED), 1500},
    [TASK_ENDED] = {TO(TASK_FINISHED), 86400 * SECONDS}, /* while nobody hears of the exit */
    [TASK_FINISHED] = {0, NO_LIMIT},
};

/* One step: what it is about. */
struct step {
    struct tasklife *l;
    const struct tasklife_event *e;
    int64_t now_ms;
};

static void emit_effect(struct step *s, enum tasklife_effect effect)
{
    vec_push(&s->l->effects, effect);
}

bool tasklife_may_move(enum task_phase from, enum task_phase to)
{
    return phases[from].edges & TO(to);
}

static void end_within(struct step *s, int64_t ms)
{
    s->l->deadline_ms = ms == NO_LIMIT ? TASKLIFE_NEVER : s->now_ms + ms;
}

/* The only one that changes the phase. */
static void move_to(struct step *s, enum task_phase to)
{
    assert(tasklife_may_move(s->l->phase, to));
    s->l->phase = to;
    s->l->since_ms = s->now_ms;
    end_within(s, phases[to].within_ms);
}

/* ---- the exit ---- */

static void take_exit(struct step *s, const struct link_exit *exit)
{
    struct tasklife *l = s->l;
    snprintf(l->text, sizeof l->text, "%s", exit->text);
    l->has_exit = true;
    l->exit =
        (struct link_exit){exit->reason, exit->code, exit->signal, exit->rank, l->text, NULL, NULL};
}

static void decide_exit(struct step *s, const struct link_exit *exit)
{
    if (s->l->has_exit)
        return;
    take_exit(s, exit);
    emit_effect(s, TASKLIFE_SAY_EXIT);
}

static void decide_killed(struct step *s, enum link_exit_reason reason, const char *text)
{
    decide_exit(s, &(struct link_exit){.reason = reason, .rank = -1, .text = text});
}

static void kill_all(struct step *s)
{
    if (s->l->phase >= TASK_KILLING)
        return;
    move_to(s, TASK_KILLING);
    emit_effect(s, TASKLIFE_STOP);
}

static void fail_task(struct step *s)
{
    decide_exit(s, &s->e->exit);
    kill_all(s);
}

/* ---- up to the ranks ---- */

static void limit_silence(struct step *s)
{
    end_within(s, s->l->stall_ms > 0 ? s->l->stall_ms : NO_LIMIT);
}

static void on_step(struct step *s)
{
    if (s->l->phase > TASK_HOOKING)
        return;
    move_to(s, TASK_HOOKING);
    s->l->step = s->e->step;
    limit_silence(s);
}

/* A step may take long, as one that installs packages; but it says something now and then. */
static void on_said(struct step *s)
{
    if (s->l->phase == TASK_HOOKING)
        limit_silence(s);
}

static void on_ranks(struct step *s)
{
    if (s->l->phase <= TASK_HOOKING)
        move_to(s, TASK_RUNNING);
}

static void on_met(struct step *s)
{
    s->l->has_met = true;
}

static void on_recover(struct step *s)
{
    s->l->is_successor = true;
    if (s->e->is_said)
        take_exit(s, &s->e->exit);
    fail_task(s);
}

/* ---- the ranks ---- */

static void end_gently(struct step *s)
{
    move_to(s, TASK_ENDING);
    emit_effect(s, TASKLIFE_ASK_TO_END);
}

static void on_rank_failed(struct step *s)
{
    if (s->l->phase == TASK_RUNNING)
        decide_exit(s, &s->e->exit);
}

static void on_all_ended(struct step *s)
{
    decide_killed(s, LINK_EXITED, "");
    kill_all(s); /* what was left behind by those that have ended */
}

static void on_children(struct step *s)
{
    struct tasklife *l = s->l;
    bool runs = l->phase == TASK_RUNNING;
    if (s->e->all_ended && (runs || l->phase == TASK_ENDING))
        on_all_ended(s);
    else if (runs && l->has_exit)
        end_gently(s);
    else if (runs && s->e->first_ended && l->has_met && l->deadline_ms == TASKLIFE_NEVER)
        end_within(s, TASKLIFE_STRAGGLE_MS);
    if (l->phase == TASK_KILLING)
        emit_effect(s, TASKLIFE_STRIKE);
}

static void on_stalled(struct step *s)
{
    if (s->l->phase != TASK_RUNNING)
        return;
    decide_exit(s, &s->e->exit);
    move_to(s, TASK_TRACING);
    emit_effect(s, TASKLIFE_LOOK);
}

static void on_looked(struct step *s)
{
    if (s->l->phase == TASK_TRACING)
        kill_all(s);
}

/* ---- orders ---- */

/* A kill of what has ended already, too, is over soon. */
static void hurry_end(struct step *s, enum tasklife_hurry how)
{
    if (s->l->hurry < how)
        s->l->hurry = how;
    if (s->l->phase == TASK_REPORTS)
        emit_effect(s, TASKLIFE_HURRY_REPORTS);
}

static void on_kill(struct step *s)
{
    decide_killed(s, LINK_KILLED, "killed");
    kill_all(s);
    hurry_end(s, TASKLIFE_KILLED);
}

static void on_end(struct step *s)
{
    decide_killed(s, LINK_KILLED, "ended with its agent");
    kill_all(s);
    hurry_end(s, TASKLIFE_HURRIED);
    if (s->l->phase != TASK_ENDED)
        return;
    move_to(s, TASK_FINISHED); /* only the log was waited for */
    emit_effect(s, TASKLIFE_QUIT);
}

/* The host is going down, or somebody ends det-task by hand: no fault of the trial. */
static void on_term(struct step *s)
{
    decide_killed(s, LINK_LOST, "det-task was told to end");
    kill_all(s);
}

/* ---- until nothing is left ---- */

bool tasklife_is_undying(const struct tasklife *l)
{
    return l->strikes >= STRIKES_MANY;
}

static void on_struck(struct step *s)
{
    struct tasklife *l = s->l;
    if (l->phase != TASK_KILLING)
        return;
    if (s->e->is_gone) {
        l->killed_in_ms = s->now_ms - l->since_ms;
        move_to(s, TASK_PIPES);
        emit_effect(s, TASKLIFE_READ_PIPES);
        return;
    }
    if (++l->strikes == STRIKES_MANY)
        emit_effect(s, TASKLIFE_SAY_UNDYING);
    end_within(s, l->strikes > STRIKES_MANY ? SLOW_MS : TICK_MS);
}

/* ---- until all is told ---- */

static void on_silent(struct step *s)
{
    if (s->l->phase == TASK_PIPES)
        end_within(s, 0);
}

static void send_reports(struct step *s)
{
    move_to(s, TASK_REPORTS);
    emit_effect(s, TASKLIFE_SEND_REPORTS);
}

static void finish_life(struct step *s)
{
    move_to(s, TASK_FINISHED);
    emit_effect(s, TASKLIFE_FINISH);
}

static void tell_exit(struct step *s)
{
    move_to(s, TASK_ENDED);
    emit_effect(s, TASKLIFE_TELL_EXIT);
    if (s->l->hurry == TASKLIFE_HURRIED)
        finish_life(s);
    else
        emit_effect(s, TASKLIFE_SEND_REST);
}

static void on_reported(struct step *s)
{
    struct tasklife *l = s->l;
    if (l->phase != TASK_REPORTS)
        return;
    if (l->hurry == TASKLIFE_HURRIED) {
        tell_exit(s);
        return;
    }
    move_to(s, TASK_LOG);
    if (l->exit.reason == LINK_KILLED)
        end_within(s, LOG_KILLED_MS);
    emit_effect(s, TASKLIFE_SEND_LOG);
}

static void on_log_empty(struct step *s)
{
    if (s->l->phase == TASK_LOG)
        tell_exit(s);
    else if (s->l->phase == TASK_ENDED)
        finish_life(s);
}

static void on_acked(struct step *s)
{
    if (s->l->phase == TASK_ENDED)
        end_within(s, LOG_AFTER_MS);
}

/* ---- deadlines ---- */

static void on_step_silent(struct step *s)
{
    char text[LINK_TEXT_MAX];
    snprintf(text, sizeof text, "%s stalled: it printed nothing for %lld s", s->l->step,
             (long long)(s->l->stall_ms / SECONDS));
    decide_exit(s, &(struct link_exit){LINK_STALLED, 0, 9, -1, text, NULL, NULL});
    kill_all(s);
}

static void on_straggle(struct step *s)
{
    emit_effect(s, TASKLIFE_SAY_STRAGGLE);
    decide_killed(s, LINK_EXITED, "all ranks were told to end after rank 0 ended well");
    end_gently(s);
}

static void strike_processes(struct step *s)
{
    emit_effect(s, TASKLIFE_STRIKE);
}

static void on_tick(struct step *s)
{
    static void (*const late[TASK_PHASE_COUNT])(struct step *) = {
        [TASK_HOOKING] = on_step_silent,
        [TASK_RUNNING] = on_straggle,
        [TASK_TRACING] = kill_all,
        [TASK_ENDING] = kill_all,
        [TASK_KILLING] = strike_processes,
        [TASK_PIPES] = send_reports,
        [TASK_LOG] = tell_exit,
        [TASK_ENDED] = finish_life,
    };
    if (s->now_ms >= s->l->deadline_ms && late[s->l->phase])
        late[s->l->phase](s);
}

/* ---- */

static void (*const handlers[TASKLIFE_EVENT_COUNT])(struct step *) = {
    [TASKLIFE_STEP] = on_step,
    [TASKLIFE_SAID] = on_said,
    [TASKLIFE_RANKS] = on_ranks,
    [TASKLIFE_MET] = on_met,
    [TASKLIFE_FAILED] = fail_task,
    [TASKLIFE_RANK_FAILED] = on_rank_failed,
    [TASKLIFE_CHILDREN] = on_children,
    [TASKLIFE_STALLED] = on_stalled,
    [TASKLIFE_LOOKED] = on_looked,
    [TASKLIFE_KILL] = on_kill,
    [TASKLIFE_END] = on_end,
    [TASKLIFE_TERM] = on_term,
    [TASKLIFE_RECOVER] = on_recover,
    [TASKLIFE_STRUCK] = on_struck,
    [TASKLIFE_SILENT] = on_silent,
    [TASKLIFE_REPORTED] = on_reported,
    [TASKLIFE_LOG_EMPTY] = on_log_empty,
    [TASKLIFE_ACKED] = on_acked,
    [TASKLIFE_TICK] = on_tick,
};

void tasklife_step(struct tasklife *l, const struct tasklife_event *e, int64_t now_ms)
{
    handlers[e->kind](&(struct step){l, e, now_ms});
}

bool tasklife_take(struct tasklife *l, enum tasklife_effect *ret)
{
    if (l->effects.n == 0)
        return false;
    *ret = l->effects.v[0];
    vec_remove(&l->effects, 0);
    return true;
}

void tasklife_init(struct tasklife *l, int64_t stall_ms, int64_t now_ms)
{
    *l = (struct tasklife){.since_ms = now_ms, .deadline_ms = TASKLIFE_NEVER, .stall_ms = stall_ms};
}

void tasklife_finish(struct tasklife *l)
{
    vec_free(&l->effects);
}

static bool must_end(const struct tasklife *l)
{
    return phases[l->phase].within_ms != NO_LIMIT || (l->phase == TASK_HOOKING && l->stall_ms > 0);
}

void tasklife_check(const struct tasklife *l)
{
    bool has_limit = l->deadline_ms != TASKLIFE_NEVER;
    assert(l->phase < TASK_PHASE_COUNT);
    assert(l->has_exit || l->phase < TASK_TRACING);
    assert(!l->has_exit || l->phase >= TASK_RUNNING);
    assert(!l->has_exit || (l->exit.text == l->text && l->exit.reason < LINK_EXIT_REASON_COUNT));
    assert(has_limit || !must_end(l));
    assert(!has_limit || must_end(l) || l->phase == TASK_RUNNING);
    assert(!has_limit || l->deadline_ms >= l->since_ms);
    assert(l->hurry == TASKLIFE_PATIENT || l->phase >= TASK_KILLING);
    assert(l->strikes == 0 || l->phase >= TASK_KILLING);
    assert(l->phase != TASK_HOOKING || l->step);
}
