/*
 * A simulator of the cluster around the real core: virtual time, one seed, and models of everything
 * else. A run is a pure function of its seed and options; its trace hash says so.
 *
 * The model. Three master processes share one store. Each holds a core and the real rules of a
 * batch (core/keep/batch.h): events wait, one transaction is in flight, the other effects are
 * performed, in order, once it is there. The store holds exactly the rows that were committed,
 * refuses those of an older epoch, and a booting master is rebuilt from it. Each host has the real
 * core of an agent (agent/core/host.h) in a process that comes and goes, at one end of a link; its
 * words are the real ones, the shells at both ends are models (links.c). A task is the real life of
 * a det-task (agent/life/) with a model of a harness: rendezvous, operations, training,
 * checkpoints, preemption. Their requests are asked again until answered and may be lost, late,
 * doubled or overtaken. Users do what users do, in pools and under quotas; the clients of custom
 * searches poll, decide and acknowledge.
 *
 * The faults. A master crashes before a commit, after it, or between any two effects; it ends as it
 * is asked to, and answers only what is in flight; it is stopped (SIGSTOP) until one of the others
 * has taken over, and wakes. PostgreSQL is away, slow, or hangs: it answers nobody, and what it has
 * in its hands it does afterwards, also for a master that died. Where it goes away with a batch in
 * its hands, that is done or not, and sent again; what harnesses and agents ask meanwhile is
 * refused. Rows of a deleted experiment go in portions, and one of those may fail. It refuses a
 * row, and says that its data are why or does not: what that belongs to is parked (core_refused),
 * and no row of it may come again; not so where the row is locked for a while. For one batch it
 * always lacks something, whatever row: its master ends. A link breaks; a host is cut off one way
 * or both ways, for less or for longer than its lease, while its tasks train on as stale twins;
 * hosts, agents, det-tasks and ranks die; what a host's tasks were is found by its next agent, or
 * lost with its disk; a host starts nothing for a while. The file system with the checkpoints is
 * unmounted on a host, or on all, and mounted again. A slot is not usable for a while. The wall
 * clock jumps.
 *
 * The checks. checks.c names them I1 to I10 after ARCHITECTURE.md's invariants. core_check() is
 * called as well: after each step for what it touched and a fourth of the rest, in whole now and
 * then. When the faults have ended everything has to end within CALM_MS of virtual time.
 *
 * The monotonic clock of each master starts anywhere; wall time goes into rows only, so the hash
 * leaves times out and a run whose wall clock jumps must have the same one (I10).
 */
#ifndef SIM_H
#define SIM_H

#include "batch.h"
#include "core.h"
#include "edges.h"
#include "map.h"
#include "rowtable.h"
#include "tasklife.h"
#include "uuid.h"
#include "vec.h"

enum {
    MASTERS = 3,
    LEASE_MS = 25000,      /* agent_reconnect_wait */
    SILENCE_MS = 10000,    /* of a link: it counts as broken */
    TAKEOVER_MS = 5000,    /* of a silent leader */
    NOTICE_MS = 3000,      /* of a PostgreSQL that hangs */
    RETRY_MS = 2000,       /* an unanswered request is asked again */
    CALM_MS = 4 * 3600000, /* after the last fault everything ends in this, */
    CALM_EVENTS = 100000,  /* and in so many events; plus 100 for each trial */
    LINE_MAX_ = 200
};

/* What a run is made from. */
struct sim_options {
    uint64_t seed;
    int64_t events;
    int agents, slots, trials; /* 0: the seed decides */
    bool jumps;                /* of the wall clock */
    bool trace;                /* lines are kept */
    bool trace_all;            /* and printed as they come */
};
struct sim_result {
    int64_t events, exps, trials, runs, crashes, faults, takeovers, hours, calm_ms, refused, parked,
        doubted, unwritable, again,
        unavailable; /* masters that ended by a batch no row of which was at fault; batches sent
                        again; requests refused for PostgreSQL is away */
    uint64_t trace;
    unsigned moved[MACHINE_COUNT][MACHINE_STATES_MAX]; /* from each state, bits of where to */
};

struct sim;

/* ---- store.c, store_rows.c: the database ---- */
struct stored_exp {
    struct row_experiment r;
    char *snapshot;
    int64_t snapshot_seq;
    VEC(struct row_search_event) events; /* those not in the snapshot */
    VEC(char *) log;                     /* all of them, for I5 */
    VEC(int64_t) trials;                 /* in order */
    bool deleted, is_custom;
    bool continued; /* it ended, and went on */
    size_t purged;  /* the first trials, whose rows are gone; the rest follows */
    bool is_purged; /* all that may be many */
    int64_t parked; /* the epoch whose master writes it no more; 0: none */
};
struct stored_alloc;
struct stored_trial {
    struct row_trial r;
    int64_t crashes; /* of its own that were made to happen */
    int64_t last_write_run, started_run;
    const struct stored_alloc *alloc; /* of its newest run */
    bool untold;                      /* of its checkpoint the master has yet to hear */
    bool gave_up;                     /* it exited early, and as if all were well */
    int64_t parked;                   /* the epoch whose master writes it no more; 0: none */
};
struct stored_alloc {
    struct row_allocation r;
};
struct sim_store {
    VEC(struct stored_exp *) exps;     /* by id from 1 */
    VEC(struct stored_trial *) trials; /* by id from 1 */
    VEC(struct stored_alloc *) allocs; /* as inserted */
    size_t allocs_live;                /* those before are all terminated */
    struct map *alloc_by_id;
    VEC(struct row_agent) agents;
    char ckpt_id[UUID_STR_MAX]; /* what the masters know the checkpoint store by; "": not */
    int64_t number;             /* of the leader's last batch */
    int64_t epoch, searched;    /* the experiment whose search heard of something last */
    int64_t down_from, down_until, slow_until; /* PostgreSQL is away; commits take long */
    int64_t hung_from, hung_until;             /* it is there and does nothing */
};
void sim_store_init(struct sim_store *s);
void sim_store_finish(struct sim_store *s);
void sim_store_clear_row(enum row_kind kind, void *row); /* what it holds is freed */
/* When PostgreSQL is there and answers: now, or later. */
int64_t sim_store_back_ms(const struct sim *m);
/* The masters know that it is away or hangs: they refuse what is asked. */
bool sim_store_noticed(const struct sim *m);
/* One row, by the one that leads. */
void sim_store_apply(struct sim *m, const struct core_effect *e);
struct stored_trial *sim_store_trial(struct sim_store *s, int64_t id);
struct stored_exp *sim_store_exp(struct sim_store *s, int64_t id);
bool sim_store_is_live(const struct stored_exp *e);
bool sim_store_is_ending(enum exp_state state); /* by whatever stopped it */
/* What it takes to continue an ended experiment: of the store, but for the two arrays, which the
 * caller frees. */
void sim_store_ended(struct sim_store *s, const struct stored_exp *e, struct core_continue *ret);
/* A harness writes (metrics, checkpoint); false: refused by the fence. */
bool sim_store_write(struct sim *m, int64_t trial, int64_t run, double steps, bool checkpoint);
/* Everything but core_restored(). search_of: the only experiment whose search is played again; 0:
 * each of them. */
struct core *sim_store_rebuild(struct sim *m, const struct core_options *o, int64_t search_of);

/* ---- messages: what happens when ---- */
enum msg_kind {
    M_USER,
    M_FAULT,
    M_CLIENTS,
    /* masters: .index; void when .conn is not its life */
    M_TURN,
    M_APPLY,
    M_ORPHAN,
    M_TOLD,
    M_TICK,
    M_WAKE,
    M_STOP,
    M_PURGE, /* .task: the experiment */
    M_TAKEOVER,
    /* hosts: .index, .conn */
    M_DIAL,
    M_POST,
    M_POST_LATE,
    M_ANSWER,
    M_STREAM,
    M_ORDER,
    M_LINK_DOWN,
    M_DIAL_BY, /* .task: the master */
    M_WORD,
    M_LOOK,
    M_SLOT,
    M_MOUNT,
    M_DEAF,
    M_AGENT_BACK,
    M_HOST_BACK,
    /* tasks: .task */
    M_TASK,
    M_REQUEST,
    M_LIFE, /* and .index: of enum tasklife_event_kind; void when .conn is not its life */
    M_KIND_COUNT
};
struct msg {
    int64_t at_ms;
    uint64_t seq, task, conn;
    enum msg_kind kind;
    int index;
    void *data; /* M_ORPHAN, M_POST, M_ANSWER, M_ORDER, M_REQUEST: theirs */
};
void sim_later(struct sim *m, int64_t in_ms, struct msg msg);

/* ---- master.c, driver.c ---- */
struct waiter {
    uint64_t token, task, conn;
    int host;                  /* -1: a harness or a user */
    uint64_t post;             /* the host's request, */
    int64_t ack;               /* with events up to this one */
    enum core_event_kind kind; /* of the event, and whom it was about: for I2 */
    int64_t id, length;
};
struct sim_master {
    int index;
    struct core *core; /* NULL: down, or standing by */
    uint64_t life;
    int64_t epoch, offset_ms; /* its monotonic clock is the simulator's plus this */
    int64_t boot_ms, frozen_until, tick_at;
    int64_t turn_at;    /* when it takes its next turn; 0: when something comes */
    struct batch batch; /* the real rules */
    size_t checked;     /* of its effects */
    bool is_promised;   /* that another event follows the last one */
    int64_t sent_ms;    /* its transaction */
    size_t bad_row;     /* which the store will refuse; SIZE_MAX: none */
    enum bad_row_kind { BAD_DATA, BAD_UNKNOWN, BAD_LOCKED, BAD_NO_ROW } bad_kind;
    int64_t bad_until;
    int64_t bad_from;       /* BAD_NO_ROW: since when */
    struct batch_told told; /* on its way from the store */
    struct imap *waiters;   /* token -> struct waiter */
    struct sim_link *links; /* one for each host */
};
struct sim_master *sim_master_leader(struct sim *m);
int64_t sim_master_wall_us(struct sim *m);
bool sim_master_serves(const struct sim *m, const struct sim_master *s);
/* Queues the event; false: nobody listens. The answer comes to w after the commit. */
bool sim_master_post(struct sim *m, struct sim_master *s, const struct core_event *ev,
                     struct waiter w);
void sim_master_arm_tick(struct sim *m, struct sim_master *s);
void sim_master_end(struct sim *m, struct sim_master *s);
void sim_master_crash(struct sim *m, struct sim_master *s);
void sim_master_stop(struct sim *m, struct sim_master *s); /* in order */
void sim_master_freeze(struct sim *m, struct sim_master *s, int64_t ms);
void sim_master_on(struct sim *m, struct msg *msg);
void sim_master_finish(const struct sim *m, struct sim_master *s);

void sim_driver_db(struct sim *m, struct sim_master *s);
/* Takes w. */
void sim_driver_post(struct sim *m, struct sim_master *s, const struct core_event *ev,
                     struct waiter *w);
void sim_driver_turn(struct sim *m, struct sim_master *s);
void sim_driver_purge(struct sim *m, struct sim_master *s, int64_t exp_id);
void sim_driver_stop(struct sim *m, struct sim_master *s);
void sim_driver_hear(struct sim *m, struct sim_master *s);
void sim_driver_do_all(struct sim *m, struct sim_master *s);
/* The store does what it was sent, though nobody hears of it. */
void sim_driver_carry_out(struct sim *m, struct sim_master *s);
void sim_driver_apply(struct sim *m, struct sim_master *s);
/* The master died while PostgreSQL hung with its transaction: that is carried out, or refused,
 * later. */
void sim_driver_orphan(struct sim *m, struct sim_master *s);
void sim_driver_orphan_apply(struct sim *m, struct msg *msg);
void sim_driver_orphan_free(void *orphan);

/* ---- hosts.c: hosts with an agent each, whose core is the real one ---- */
struct host;
struct sim_dial {  /* the agent's end of the link */
    uint64_t conn; /* number of the connection */
    uint64_t post; /* of the request in flight; 0: none */
    int master;    /* it goes to */
    bool is_paused, is_greeted, has_stream;
};
struct sim_host {
    int index;
    char id[24];
    const char *pool; /* "": the default one */
    int slots;
    enum sim_wiring { WIRES_UNSAID, WIRES_PAIRS, WIRES_APART, WIRES_NODES, WIRES_COUNT } wiring;
    unsigned given; /* scratch of a check: slots given in its step, a bit each */
    bool alive;
    struct host *agent; /* NULL: its process is not there */
    uint64_t process;   /* number of that */
    bool is_performing; /* what the agent's core asks for */
    struct sim_dial dial;
    int64_t lost_ms;               /* when the master last counted it as lost */
    int64_t lost_before_ms;        /* and since when it was counted before that */
    int64_t order_ms;              /* when the last order on its way arrives */
    int64_t broken_until;          /* it can start nothing */
    int64_t up_cut, down_cut;      /* nothing passes to the master, from it, until then */
    int64_t deaf_from, deaf_until; /* what its tasks ask finds no way, but its agent does */
    VEC(struct task *) tasks;      /* those that have a directory */
    bool looks;                    /* at the checkpoint store, when it is told to */
    bool watches, mounted;
    bool judges;            /* it says which slots are not usable; others are older */
    unsigned unfit, unseen; /* a bit for each of these; and of those not looked at */
};
#define SIM_STORE "/ckpt" /* the one checkpoint store, on a file system that hosts mount */
/* The agent's process comes, finds what runs, and dials. */
void hosts_begin(struct sim *m, int index, int64_t in_ms);
void hosts_finish(struct sim_host *h);
/* What the agent says of NVLink and nodes; -1: nothing. */
int hosts_island(const struct sim_host *h, int slot);
int hosts_numa(const struct sim_host *h, int slot);
void hosts_break(struct sim *m, int index);
void hosts_restart(struct sim *m, int index);
void hosts_die(struct sim *m, int index);
void hosts_back(struct sim *m, int index);
void hosts_on(struct sim *m, const struct msg *msg);
/* What the agent's core asks for; after each call of it. */
void hosts_perform(struct sim *m, struct sim_host *h);
/* By its det-task: the agent hears of it, if it is there. */
void hosts_hear_running(struct sim *m, const struct task *t);
void hosts_hear_ended(struct sim *m, const struct task *t);
void hosts_hear_gone(struct sim *m, const struct task *t);
/* The checkpoints' file system comes or goes. */
void hosts_mount(struct sim *m, int index, bool mounted);
/* A packet filter refuses what its tasks send, until then; their det-tasks tell of it. */
void hosts_deafen(struct sim *m, int index, int64_t until);
bool hosts_is_deaf(const struct sim *m, int index);
/* One of its slots is not usable, or is again. */
void hosts_ail(struct sim *m, int index, int slot, bool usable);
int hosts_find(const struct sim *m, const char *id);
bool hosts_cut_up(const struct sim *m, int index);
bool hosts_cut_down(const struct sim *m, int index);
const char *hosts_boot(struct sim *m, char out[UUID_STR_MAX]); /* a new one */

/* ---- links.c: between agents and masters ---- */
struct sim_link { /* a master's end */
    char boot[UUID_STR_MAX];
    char past[4][UUID_STR_MAX]; /* that others have followed, the last one first */
    int64_t seen;               /* highest event taken; -1: none of this boot */
    int64_t next_seq;           /* of orders */
    VEC(char *) orders;         /* that wait for the stream */
    uint64_t stream;            /* the connection that has it; 0: none */
    int64_t dial_by_ms;         /* no stream yet: lost after this; 0: not waiting */
    bool here;                  /* the core was told hello and not yet lost */
};
void links_dial(struct sim *m, struct sim_host *h, int64_t in_ms);
/* The agent is gone, its master hears of it. */
void links_close(struct sim *m, struct sim_host *h);
/* The link ends; another one is tried in a while. */
void links_down(struct sim *m, int index, int64_t in_ms);
void links_step(struct sim *m, struct sim_host *h);
void links_on(struct sim *m, struct msg *msg);
/* What the master was told is committed; or nobody hears of it, for PostgreSQL is away. */
void links_acked(struct sim *m, const struct waiter *w);
void links_refused(struct sim *m, const struct waiter *w);
/* False: it has no link to that master. */
bool links_start(struct sim *m, const struct sim_master *s, const struct core_start *o);
bool links_kill(struct sim *m, const struct sim_master *s, const struct core_kill *o);
void links_store(struct sim *m, const struct sim_master *s, const struct core_store_order *o);
/* The master ends. */
void links_end(const struct sim *m, struct sim_master *s);
void links_msg_free(struct msg *msg);

/* ---- tasks.c: a container and its harness ---- */
enum phase {
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
    int host, node, nodes;
    VEC(int) slots;
    int64_t trial, run, length;
    bool has_store; /* it knows its checkpoint store by an id */
    bool gc, met, preempt, has_begun, has_run;
    bool stopped;         /* nothing of it runs, its exit is told */
    bool is_dead;         /* it has no det-task (any more) */
    struct tasklife life; /* of its det-task */
    uint64_t lives;       /* det-tasks that have ended */
    int64_t begun_ms;
    bool is_performing; /* what life asks for */
    bool is_gone;       /* the last strike left nothing of it */
    int64_t tick_ms;    /* when life is told of its deadline; 0: never yet */
    int64_t killed_ms;  /* when it was first to be killed; 0: not */
    enum phase phase;   /* of its harness */
    double progress, metric;
    uint64_t waiting; /* request token awaited, 0: none */
    int64_t asked_ms;
    int answer; /* of the last request */
    bool answered;
    struct core_exit exit;
    int64_t unreached_from;  /* since when it tells that it gets no answer, */
    uint64_t unreached_conn; /* over this connection of its agent */
    struct task *next;       /* of the same allocation */
};
struct task *task_create(struct sim *m, int host, const char *alloc, const char *container);
void task_begin(struct sim *m, struct task *t); /* by a new det-task */
void task_run(struct sim *m, struct task *t);
void task_end(struct sim *m, struct task *t, enum core_exit_reason reason, int code);
void task_over(struct sim *m, struct task *t, enum core_exit_reason reason, int code);
void task_answer(struct sim *m, struct task *t, uint64_t token, int code);
struct task *task_find(const struct sim *m, uint64_t uid);
struct task *task_of(const struct sim *m, int host, const char *alloc);
void task_free(struct sim *m, struct task *t); /* and off the indices */

/* ---- lives.c: det-tasks ---- */
void life_begin(struct sim *m, struct task *t);
void life_recover(struct sim *m, struct task *t); /* in place of one that died */
void life_die(struct sim *m, struct task *t);
void life_lose_power(struct task *t); /* and all that runs with it */
void life_step(struct sim *m, struct task *t, struct tasklife_event e);
void life_end(struct sim *m, struct task *t, enum core_exit_reason reason, int code);
void life_on(struct sim *m, const struct msg *msg);

/* ---- requests.c: of harnesses, over a network ---- */
/* Sends ev (trial, run, allocation and container are the task's); token 0: nobody waits. */
void request_send(struct sim *m, const struct task *t, struct core_event ev, uint64_t token);
void request_arrive(struct sim *m, struct msg *msg);
/* The master, if the task's host reaches one that serves, both ways. */
struct sim_master *request_reach(struct sim *m, const struct task *t);

/* ---- setup.c ---- */
void setup_hosts(struct sim *m);
void setup_options(struct sim *m);     /* after the hosts */
const char *setup_pool(struct sim *m); /* one of those there are */

/* ---- client.c: whoever runs the custom searches ---- */
/* Asks for the events of each of them, and again in a while. */
void client_poll(struct sim *m);
/* The answer: it decides by the events alone. */
void client_hear(struct sim *m, int64_t exp_id, const char *events);

/* ---- users.c, faults.c ---- */
void user_act(struct sim *m);
/* At the end: whatever is paused goes on, whatever is off is on. */
void user_release(struct sim *m);
void fault_strike(struct sim *m);

/* ---- checks.c, check_calm.c, check_end.c, check_neighbours.c ---- */
void check_step(struct sim *m, struct sim_master *s, const struct core_event *ev, bool stale,
                size_t from);
/* Of what the step from this effect on has placed: each got the best neighbours that were free. */
void check_neighbours(struct sim *m, const struct sim_master *s, size_t from);
void check_answer(struct sim *m, const struct waiter *w);
void check_kill(struct sim *m, const struct core_kill *k);
void check_start(struct sim *m, const struct core_start *o);
void check_rest(struct sim *m, struct sim_master *s);
void check_quotas(struct sim *m, const struct core *c);
void check_calm(struct sim *m, struct sim_master *s);
void check_end(struct sim *m);

/* ---- moves.c: which moves were made ---- */
void moves_note(struct sim_result *r, const struct core *c); /* c NULL: none */
void moves_add(struct sim_result *all, const struct sim_result *r);
/* Says which edges nobody went; how many of them that many worlds do not do without. */
size_t moves_missing(const struct sim_result *all, int64_t worlds);

/* ---- trace.c ---- */
/* A line of the trace, when it is wanted. */
void sim_trace(struct sim *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_trace_event(struct sim *m, const struct sim_master *s, const struct core_event *ev);
void sim_trace_effect(struct sim *m, const struct core_effect *e);
/* Into the hash of everything that was decided. */
void sim_mix(struct sim *m, uint64_t x);
void sim_mix_effect(struct sim *m, const struct core_effect *e);
void sim_watch(struct sim *m); /* an assert of the core prints the trace too */
_Noreturn void sim_fail(const struct sim *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

struct sim {
    struct sim_options in;
    uint64_t rng, seq, next_uid, next_token, next_conn;
    int64_t now_ms, exps_made, calm_at;
    bool calm;            /* no more faults and no more new work */
    int64_t no_row_epoch; /* of the master that met a batch which cannot be written; 0: none */
    struct core_options o;
    struct core_pool_options red; /* one of the pools, and the quotas, of o */
    struct core_quota quotas[2];
    int pools_n;
    struct sim_master masters[MASTERS];
    int leader;
    struct sim_store store;
    struct sim_host *hosts;
    int hosts_n;
    char marker[UUID_STR_MAX]; /* in the checkpoints' file system; "": none yet */
    VEC(struct msg) heap;
    struct imap *tasks;   /* uid -> task */
    struct map *by_alloc; /* allocation -> its first task */
    struct map *started;  /* ids of containers that ever went to work */
    struct map *placed;   /* and of those whose slots were looked at (check_neighbours.c) */
    struct map *given_up; /* and of allocations that were given up for an agent's silence */
    struct map *ending;   /* when it was first seen that they end; for I3 */
    struct sim_result got;
    char (*lines)[LINE_MAX_]; /* the last of the trace */
    size_t lines_n;
};
uint64_t sim_random(struct sim *m, uint64_t below);
bool sim_chance(struct sim *m, int per_mille); /* never when calm */
/* One whole run, checks and all. */
void sim_run(const struct sim_options *in, struct sim_result *ret);

#endif
