/* What happened: a hash of every decision, and the last lines of it for people. */
#include "sim.h"

#include "hash.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 200 };

static struct sim *watched;

static const char *const event_names[CORE_EVENT_KIND_COUNT] = {
    [CORE_EV_TICK] = "tick",
    [CORE_EV_EXP_CREATE] = "create",
    [CORE_EV_EXP_ACTIVATE] = "activate",
    [CORE_EV_EXP_PAUSE] = "pause",
    [CORE_EV_EXP_CANCEL] = "cancel",
    [CORE_EV_EXP_KILL] = "kill",
    [CORE_EV_EXP_PATCH] = "patch",
    [CORE_EV_EXP_CONTINUE] = "continue",
    [CORE_EV_EXP_EDIT] = "edit",
    [CORE_EV_EXP_DELETE] = "delete",
    [CORE_EV_EXP_GC] = "gc",
    [CORE_EV_EXP_PURGED] = "purged",
    [CORE_EV_TRIAL_KILL] = "kill trial",
    [CORE_EV_AGENT_SET] = "set agent",
    [CORE_EV_IDS_SEEN] = "ids seen",
    [CORE_EV_EXP_ID] = "experiment's number",
    [CORE_EV_TRIAL_ID] = "trial's number",
    [CORE_EV_AGENT_HELLO] = "hello",
    [CORE_EV_AGENT_STATE] = "state",
    [CORE_EV_AGENT_EXIT] = "exit",
    [CORE_EV_AGENT_LOST] = "link lost",
    [CORE_EV_AGENT_STORE] = "store",
    [CORE_EV_AGENT_SLOT] = "slot",
    [CORE_EV_STORE_ADOPT] = "adopt",
    [CORE_EV_OP_COMPLETED] = "op completed",
    [CORE_EV_PROGRESS] = "progress",
    [CORE_EV_EARLY_EXIT] = "early exit",
    [CORE_EV_CHECKPOINT] = "checkpoint",
    [CORE_EV_LOG_POLICY] = "log policy",
    [CORE_EV_ACK_PREEMPTION] = "ack preemption",
    [CORE_EV_RENDEZVOUS] = "rendezvous",
    [CORE_EV_READY] = "ready",
    [CORE_EV_WAITING] = "waiting",
    [CORE_EV_DAEMON] = "daemon",
    [CORE_EV_SEARCH_EVENTS] = "search events",
    [CORE_EV_SEARCH_OPS] = "search operations",
};

void sim_trace(struct sim *m, const char *fmt, ...)
{
    if (!m->in.trace)
        return;
    char *line = m->lines[m->lines_n++ % LINES];
    int n = snprintf(line, LINE_MAX_, "%10.3f s  ", (double)m->now_ms / 1000);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line + n, LINE_MAX_ - (size_t)n, fmt, ap);
    va_end(ap);
    if (m->in.trace_all)
        puts(line);
}

void sim_trace_event(struct sim *m, const struct sim_master *s, const struct core_event *ev)
{
    char who[160] = "", what[120] = "";
    sim_mix(m, (uint64_t)m->now_ms * 64 + (uint64_t)ev->kind);
    if (!m->in.trace)
        return;
    if (ev->kind == CORE_EV_EXP_GC || ev->kind == CORE_EV_EXP_DELETE)
        snprintf(who, sizeof who, " exp %lld", (long long)ev->gc.exp_id);
    else if (ev->exp_id)
        snprintf(who, sizeof who, " exp %lld", (long long)ev->exp_id);
    else if (ev->trial_id)
        snprintf(who, sizeof who, " trial %lld run %lld", (long long)ev->trial_id,
                 (long long)ev->run_id);
    else if (ev->agent_id)
        snprintf(who, sizeof who, " %s", ev->agent_id);
    else if (ev->alloc_id)
        snprintf(who, sizeof who, " %s", ev->alloc_id);
    if (ev->kind == CORE_EV_AGENT_STATE || ev->kind == CORE_EV_AGENT_EXIT)
        snprintf(what, sizeof what, " %s (reason %d, code %d)", ev->task.alloc,
                 (int)ev->task.exit.reason, ev->task.exit.code);
    else if (ev->kind == CORE_EV_OP_COMPLETED)
        snprintf(what, sizeof what, " length %lld", (long long)ev->op.length);
    else if (ev->kind == CORE_EV_CHECKPOINT)
        snprintf(what, sizeof what, " %s", ev->checkpoint.uuid);
    else if (ev->kind == CORE_EV_AGENT_HELLO)
        snprintf(what, sizeof what, " with %zu tasks", ev->hello.tasks_n);
    const char *name = event_names[ev->kind];
    sim_trace(m, "master %d  <- %s%s%s", s->index, name ? name : "?", who, what);
}

static void trace_row(struct sim *m, const struct core_effect *e)
{
    if (e->kind == CORE_SAVE_EXPERIMENT)
        sim_trace(m, "store     row: exp %lld %s", (long long)e->experiment.id,
                  exp_state_text(e->experiment.state));
    else if (e->kind == CORE_SAVE_TRIAL)
        sim_trace(m, "store     row: trial %lld %s run %lld restarts %lld", (long long)e->trial.id,
                  trial_state_text(e->trial.state), (long long)e->trial.run_id,
                  (long long)e->trial.restarts);
    else if (e->kind == CORE_SAVE_ALLOCATION)
        sim_trace(m, "store     row: %s %s %s", e->allocation.id,
                  alloc_state_text(e->allocation.state),
                  e->allocation.exit_reason ? e->allocation.exit_reason : "");
    else if (e->kind == CORE_SAVE_EXP_STATE)
        sim_trace(m, "store     row: exp %lld %s", (long long)e->exp_state.id,
                  exp_state_text(e->exp_state.state));
    else if (e->kind == CORE_DELETE_EXPERIMENT)
        sim_trace(m, "store     row: exp %lld is deleted", (long long)e->exp_id);
    else if (e->kind == CORE_SAVE_SEARCH_EVENT)
        sim_trace(m, "store     row: exp %lld search event %lld %s",
                  (long long)e->search_event.experiment_id, (long long)e->search_event.seq,
                  e->search_event.event);
}

void sim_trace_effect(struct sim *m, const struct core_effect *e)
{
    if (!m->in.trace)
        return;
    if (e->kind == CORE_ORDER_START)
        sim_trace(m, "order     -> %s: start %s", e->start.agent_id, e->start.alloc_id);
    else if (e->kind == CORE_ORDER_KILL)
        sim_trace(m, "order     -> %s: kill %s", e->kill.agent_id, e->kill.alloc_id);
    else if (e->kind == CORE_ORDER_STORE)
        sim_trace(m, "order     -> %s: %s %s", e->store_order.agent_id,
                  e->store_order.make ? "make" : "look at", e->store_order.place);
    else if (e->kind == CORE_PREEMPT)
        sim_trace(m, "order     -> %s: preempt", e->alloc_id);
    else if (e->kind == CORE_REPLY && e->reply.code)
        sim_trace(m, "reply     %d: %s", e->reply.code, e->reply.text ? e->reply.text : "");
    else if (CORE_EFFECT_IS_ROW(e->kind))
        trace_row(m, e);
}

void sim_mix(struct sim *m, uint64_t x)
{
    m->got.trace = (m->got.trace ^ x) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    m->got.trace ^= m->got.trace >> 29;
}

static void mix_str(struct sim *m, const char *s)
{
    sim_mix(m, s ? hash_fnv64(s, strlen(s)) : 1);
}

/* Times and texts for people decide nothing and are left out. */
void sim_mix_effect(struct sim *m, const struct core_effect *e)
{
    sim_mix(m, (uint64_t)e->kind);
    switch (e->kind) {
    case CORE_SAVE_EXPERIMENT:
        sim_mix(m, (uint64_t)e->experiment.id << 8 | e->experiment.state);
        mix_str(m, e->experiment.core);
        break;
    case CORE_SAVE_SEARCH_EVENT: mix_str(m, e->search_event.event); break;
    case CORE_SAVE_TRIAL:
        sim_mix(m, (uint64_t)e->trial.id << 8 | e->trial.state);
        sim_mix(m, (uint64_t)e->trial.run_id << 8 | (uint64_t)e->trial.restarts);
        mix_str(m, e->trial.core);
        break;
    case CORE_SAVE_ALLOCATION:
        mix_str(m, e->allocation.id);
        mix_str(m, e->allocation.core);
        break;
    case CORE_ORDER_START:
        mix_str(m, e->start.container);
        mix_str(m, e->start.agent_id);
        break;
    case CORE_ORDER_KILL: mix_str(m, e->kill.container); break;
    case CORE_ORDER_STORE: mix_str(m, e->store_order.agent_id); break;
    case CORE_REPLY: sim_mix(m, (uint64_t)(-e->reply.code)); break;
    case CORE_SAVE_EXP_STATE: /* what follows from the others is seen elsewhere */
    case CORE_SAVE_SEARCH_SNAPSHOT:
    case CORE_SAVE_AGENT:
    case CORE_SAVE_STORE:
    case CORE_SAVE_TIMELINE:
    case CORE_SAVE_PARKED:
    case CORE_DELETE_SEARCH_SNAPSHOT:
    case CORE_DELETE_EXPERIMENT:
    case CORE_PREEMPT:
    case CORE_RENDEZVOUS:
    case CORE_ALLOC_END:
    case CORE_TASK_LOG:
    case CORE_SEARCH_WAKE:
    case CORE_GC_WANTED:
    case CORE_PURGE:
    case CORE_NOTHING:
    case CORE_EFFECT_KIND_COUNT: break;
    }
}

static void dump(const struct sim *m)
{
    size_t from = m->lines_n > LINES ? m->lines_n - LINES : 0;
    fflush(stdout);
    for (size_t i = from; !m->in.trace_all && i < m->lines_n; i++)
        fprintf(stderr, "%s\n", m->lines[i % LINES]);
}

static void on_abort(int sig)
{
    if (watched) {
        dump(watched);
        fprintf(stderr, "sim: seed %llu, event %lld, %lld ms: the core aborted\n",
                (unsigned long long)watched->in.seed, (long long)watched->got.events,
                (long long)watched->now_ms);
    }
    _exit(1);
}

void sim_watch(struct sim *m)
{
    watched = m;
    if (m && m->in.trace)
        m->lines = det_zalloc(LINES * sizeof *m->lines);
    signal(SIGABRT, on_abort);
}

void sim_fail(const struct sim *m, const char *fmt, ...)
{
    va_list ap;
    dump(m);
    fprintf(stderr, "sim: seed %llu, event %lld, %lld ms: ", (unsigned long long)m->in.seed,
            (long long)m->got.events, (long long)m->now_ms);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    _exit(1);
}
