/*
 * How a master's events become durable, as a machine. Pure: no I/O, no clock. Who runs it
 * (shell/drive/driver.c, tests/sim/driver.c) posts events, says what the database answered, and
 * does what batch_next() names until that is nothing.
 *
 *     REBUILDING --> SENDING --> IN_FLIGHT --committed--> PERFORMING --> IDLE
 *                       ^           |  |                      ^           | turn
 *                       |  refused  |  | away, doubted        | no effect v
 *                       +-----------+  v                      +------ GATHERING
 *                       +<---turn---- HELD                               |
 *                       +<-----------------------------------------------+
 *
 * and from IN_FLIGHT and HELD to OVER: what is in hand is never performed.
 *
 * The rules. What waits is stepped in order, at most batch.most events at once, each told whether
 * another follows. All rows of a batch are one transaction; one that has rows has the number after
 * the last that is durable, also when it is sent again, so that a commit whose answer was lost is
 * known. Nothing of a batch is performed before its rows are durable, then each effect once, in
 * order. Meanwhile what comes waits. While PostgreSQL is away, what somebody asks is refused, also
 * when it waits already, and is not stepped; what nobody waits for is kept.
 *
 * That clock begins anew where the server went away meanwhile: it counts the time in which the
 * server was there and took all else. An outage between two failures would otherwise cost a row
 * that fails in a server which is only just coming back.
 *
 * A row that is taken out loses nothing acknowledged: what it would have said was never performed,
 * and the rows before it stand.
 *
 * A row that the database refuses for what is in it is looked for by sending each row by itself, in
 * the same transaction, and the batch goes on without it: core_refused(). A lock that somebody has,
 * and a server in trouble, are waited for; a table or function that is not as it was laid ends the
 * master, and the next start lays the functions again. Of other failures of a statement nobody can
 * say whether the row or the moment is at fault. A row is taken for the culprit when it alone
 * fails, twice and for some time, while the server is there and writes the batch's number: 2 s;
 * 15 s where it is the limit of time; 5 minutes where the server lacks memory or cannot read its
 * disk; where it is one after the other, the longest of them, from the first on. That doubles with
 * each row of one kind that was taken out so within an hour of the last, up to half an hour, but
 * for the second of an experiment, which ends all of it. So one bad row holds up all others for
 * that long and no longer; and where all rows fail, ten of a kind are lost in half an hour, not all
 * of them in a minute. Where the batch's number cannot be written, or who is parked, the master
 * ends: at once, or after half an hour where it is what as a rule passes.
 *
 * When the limit of time was met, by the batch as a whole or by a row, the limit of each row is
 * shorter (BATCH_SINGLY_MS) until a row is taken out or all are written.
 */
#ifndef CORE_BATCH_H
#define CORE_BATCH_H

#include "batch_event.h"

enum batch_state {
    BATCH_REBUILDING, /* not begun */
    BATCH_IDLE,
    BATCH_GATHERING, /* events are stepped */
    BATCH_SENDING,
    BATCH_IN_FLIGHT,
    BATCH_HELD, /* PostgreSQL was away: to be sent again */
    BATCH_PERFORMING,
    BATCH_OVER,
    BATCH_STATE_COUNT
};

/* Why nobody can say whose fault a failure is. */
enum batch_doubt {
    BATCH_ODD,      /* by who knows what */
    BATCH_LATE,     /* it met the limit of time: as a rule it passes */
    BATCH_STRAINED, /* the server lacks something, for this row or for all: as a rule it passes */
    BATCH_DOUBT_COUNT
};

/* A statement that writes one row (is_singly) may take so long, once the limit of time was met. */
enum { BATCH_SINGLY_MS = 15000 };

struct batch {
    struct core *core; /* borrowed, for core_refused() and edges_go() */
    enum batch_state state;
    struct batch_event *head, **tail; /* not yet stepped */
    struct batch_event *refused;      /* taken from there */
    size_t queued, asked;             /* of what is queued somebody waits for so many */
    size_t most;
    struct core_effects effects; /* of the batch in hand */
    size_t done;                 /* events stepped, then effects performed */
    int64_t number;              /* of the last that is durable */
    int64_t retry_ms;            /* HELD: when it is sent again, INT64_MAX: when PostgreSQL is up */
    struct {
        size_t row; /* effects.n: what no row is at fault for, which has one clock */
        int64_t since_ms;
        unsigned tries;         /* 0: nothing is in doubt */
        enum batch_doubt doubt; /* a row's: the most patient so far */
    } suspect;
    int64_t doubted_exp; /* whose row was taken out last, as the culprit; 0: none's */
    int64_t doubted_ms;  /* when that was */
    unsigned char doubted[CORE_EFFECT_KIND_COUNT]; /* taken out so, none an hour after the last */
    bool is_numbered;                              /* the one in hand has rows */
    bool is_singly;  /* each row in a statement of its own, to find the refused one */
    bool is_late;    /* the one in hand has met the limit of time */
    bool is_overdue; /* a commit failed and is tried again: held, or in flight */
    bool is_up;      /* PostgreSQL, as far as is known */
    bool is_stopping;
    bool is_owing;  /* OVER: BATCH_DO_FORGET or _DIE is not yet said */
    bool is_broken; /* the database refuses what no data explains */
};
/* Into the caller's storage. most: events stepped for one commit. */
void batch_init(struct batch *b, struct core *core, size_t most);
void batch_finish(struct batch *b); /* what waits is gone, whoever waits for it is the caller's */

/* What core_restored() owed is performed first. Takes the effects. */
void batch_begin(struct batch *b, struct core_effects *owed);
/* Queues a copy. whose: who waits for the answer; NULL: nobody. True: it will be refused. */
bool batch_post(struct batch *b, const struct core_event *ev, void *whose);
void batch_db(struct batch *b, bool is_up, int64_t now_ms);
/* Nothing is stepped any more, what is asked is refused, and of what is in flight only the answers
 * go out. */
void batch_stop(struct batch *b);
/* When batch_turn() is wanted: 0 at once, INT64_MAX not at all. */
int64_t batch_turn_ms(const struct batch *b);
void batch_turn(struct batch *b, int64_t now_ms);

enum batch_answer {
    BATCH_COMMITTED, /* now, or when it was sent before */
    BATCH_AWAY,      /* whether it was committed is not known */
    BATCH_CANCELED,  /* by whoever ends */
    BATCH_REFUSED,   /* a row, by what the data are */
    BATCH_DOUBTED,   /* a statement; doubt: why */
    BATCH_BROKEN     /* by another leader, or the schema is not this version's */
};
/* Of the transaction in flight. row: of BATCH_REFUSED and _DOUBTED, when is_singly, the effect that
 * the row is of, effects.n: none; words: the database's. */
struct batch_told {
    enum batch_answer answer;
    size_t row;
    const char *words;
    enum batch_doubt doubt;
};
void batch_tell(struct batch *b, const struct batch_told *t, int64_t now_ms, int64_t now_us);
/* So long each statement of the batch in hand may take; 0: as long as any. */
int64_t batch_limit_ms(const struct batch *b);

enum batch_do_kind {
    BATCH_DO_NOTHING,
    BATCH_DO_STEP,    /* .event: core_step() onto batch.effects; then batch_event_destroy() */
    BATCH_DO_REFUSE,  /* .event: tell whose it is; then batch_event_destroy() */
    BATCH_DO_COMMIT,  /* batch.effects, as number + 1 when is_numbered; then batch_tell() */
    BATCH_DO_PERFORM, /* .effect */
    BATCH_DO_END,     /* of the batch: its effects are freed with the next call */
    BATCH_DO_FORGET,  /* what is in hand was held and never will be written: its requests end */
    BATCH_DO_DIE      /* memory and database differ: a restart rebuilds the core from the rows */
};
struct batch_do {
    enum batch_do_kind kind;
    struct batch_event *event;
    const struct core_effect *effect;
};
struct batch_do batch_next(struct batch *b);

#endif
