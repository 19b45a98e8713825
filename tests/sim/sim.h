/*
 * A simulator of the cluster around the real core: virtual time, one seed, agents and harnesses as
 * small models, a store that holds exactly the rows the core saved, and faults.
 *
 * The master is crashed at any commit (before it: the batch is lost; after it: its other effects
 * are) and rebuilt from the rows. Links break, messages are lost, repeated and late; agents
 * restart, hosts and det-tasks die, ranks crash. Then the faults end and everything has to come to
 * its end.
 *
 * Checked: the core's own invariants (I4 among them) after every step; I1: what a trial's store
 * accepts comes from runs that never fall, and no container that went to work is started again; I5:
 * each search, replayed from its log, makes the trials that the rows have; a restart was only
 * counted for a crash of the trial's own; a COMPLETED trial has its last checkpoint; nothing runs
 * and no slot is held at the end.
 */
#ifndef SIM_H
#define SIM_H

#include "core.h"
#include "map.h"
#include "searcher.h"
#include "uuid.h"
#include "vec.h"

enum { AGENTS_MAX = 12, SLOTS_MAX = 4 };

/* ---- store.c: the database ---- */
struct stored_exp {
    struct row_experiment r;
    char *snapshot;
    int64_t snapshot_seq;
    VEC(struct row_search_event) events; /* those not in the snapshot */
    VEC(char *) log;                     /* all of them: for the replay at the end */
    bool deleted;
};
struct stored_trial {
    struct row_trial r;
    int64_t crashes;       /* of its own that were made to happen */
    int64_t last_write_run;
    bool final;            /* a checkpoint of the whole length is there */
};
struct stored_alloc {
    struct row_allocation r;
};
struct store {
    VEC(struct stored_exp *) exps;
    VEC(struct stored_trial *) trials; /* by id from 1 */
    VEC(struct stored_alloc *) allocs;
    struct map *alloc_by_id;
    VEC(struct row_agent) agents;
};
struct sim;
void store_init(struct store *s);
void store_finish(struct store *s);
void store_apply(struct sim *m, const struct core_effect *e);
struct stored_trial *store_trial(struct store *s, int64_t id);
struct stored_exp *store_exp(struct store *s, int64_t id);
/* A harness writes (metrics, checkpoint); false: refused by the fence. */
bool store_write(struct sim *m, int64_t trial, int64_t run, double steps, bool checkpoint);
struct core *store_rebuild(struct sim *m, const struct core_options *o);

/* ---- messages: what happens when ---- */
enum msg_kind { M_USER, M_COMMIT, M_PERFORM, M_BOOT, M_TICK, M_HELLO, M_LINK_DOWN, M_AGENT_EVENT,
                M_ORDER, M_TASK, M_FAULT, M_HOST_BACK };
struct msg {
    int64_t at_ms;
    uint64_t seq;
    enum msg_kind kind;
    int agent;
    uint64_t task, conn;
    void *data;               /* M_ORDER: struct order; M_AGENT_EVENT: struct agent_event */
};
void sim_later(struct sim *m, int64_t in_ms, struct msg msg);

/* ---- tasks.c: a container and its harness ---- */
enum phase {
    P_QUEUED,
    P_STARTING,
    P_RENDEZVOUS,
    P_PASSIVE,
    P_OPERATION,
    P_TRAIN,
    P_COMPLETE,
    P_FINAL,
    P_ACK,
    P_PREEMPTED,
    P_ENDED
};
struct task {
    uint64_t uid;
    char *alloc, container[UUID_STR_MAX];
    int agent, node, nodes, slots[SLOTS_MAX * AGENTS_MAX];
    int slots_n;
    int64_t trial, run, length;
    bool gc, met, preempt, killed, stopped; /* stopped: nothing of it runs, its exit is known */
    enum phase phase;
    double progress;
    uint64_t waiting;         /* request token awaited, 0: none */
    int64_t asked_ms;
    int answer;               /* of the last request */
    bool answered;
    struct core_exit exit;
};
void task_run(struct sim *m, struct task *t);
void task_end(struct sim *m, struct task *t, enum core_exit_reason reason, int code);
struct task *task_find(struct sim *m, uint64_t uid);
struct task *task_of(struct sim *m, int agent, const char *alloc);
void task_free(struct task *t);

/* ---- hosts.c: agents ---- */
struct host {
    char id[24];
    int slots;
    bool alive, connected, hello_sent;
    uint64_t conn;            /* number of the connection */
    int64_t order_ms;         /* when the last order on its way arrives */
    VEC(struct task *) tasks; /* those the master has not acknowledged the end of */
};
struct order {
    bool kill;
    char *alloc, container[UUID_STR_MAX];
    json_t *task;
    int64_t trial, run;
};
void host_connect(struct sim *m, int agent, int64_t in_ms);
void host_break(struct sim *m, int agent);
void host_hello(struct sim *m, int agent, uint64_t conn);
void host_event(struct sim *m, const struct msg *msg);
void host_order(struct sim *m, const struct msg *msg);
void host_report(struct sim *m, struct task *t, bool exit, enum core_task_state state);
void host_die(struct sim *m, int agent);
void host_acked(struct sim *m, int agent, uint64_t conn, uint64_t task_uid, bool hello);
void order_free(struct order *o);

/* ---- master.c ---- */
struct waiter {
    uint64_t token, task, conn;
    int agent;                /* -1: a harness or a user */
    bool hello;
};
/* Steps the event; false: nobody listens. The answer comes to w after the commit. */
bool master_post(struct sim *m, struct core_event *ev, struct waiter w);
void master_commit(struct sim *m);
void master_perform(struct sim *m);
void master_crash(struct sim *m);
void master_boot(struct sim *m);
void master_tick(struct sim *m);

/* ---- users.c ---- */
void user_act(struct sim *m);
void user_release(
    struct sim *m); /* at the end: whatever is paused goes on, whatever is off is on */

struct sim {
    uint64_t rng, seq, next_uid, next_token, next_conn;
    int64_t now_ms;
    int64_t steps, budget, crashes, boots, faults;
    bool calm;                /* no more faults and no more new work */
    struct core_options o;
    struct core *core;        /* NULL: down */
    struct store store;
    struct core_effects batch, committed;
    bool commit_due, perform_due;
    VEC(struct waiter) waiters;
    struct host hosts[AGENTS_MAX];
    int hosts_n;
    VEC(struct msg) heap;
    struct imap *tasks;       /* uid -> task */
    struct map *started;      /* ids of containers that ever went to work */
    int64_t exps_made, tick_at;
    uint64_t trace;           /* hash of every row: equal seeds, equal traces */
};
uint64_t sim_random(struct sim *m, uint64_t below);
bool sim_chance(struct sim *m, int per_mille); /* never when calm */
_Noreturn void sim_fail(const struct sim *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
