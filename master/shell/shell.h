/* The parts of a running master, handed to every HTTP handler. Owned by main.c. */
#ifndef SHELL_SHELL_H
#define SHELL_SHELL_H

#include <stdint.h>
#include <uv.h>

struct shell_counts {                   /* since the start, for /metrics */
    uint64_t metric_reports, log_lines; /* durably taken */
    uint64_t audited;                   /* lines of the audit log, begun by this leader */
    uint64_t retention_rounds, retention_logs, retention_metrics; /* rows deleted */
};

struct shell {
    uv_loop_t *loop;
    const struct masterconf *conf; /* masterconf.h */
    struct db *db;                 /* db.h */
    struct http *http;             /* http.h */
    struct transport *transport;   /* transport.h: TLS, and the cluster's own authority */
    struct auth *auth;             /* auth.h */
    struct driver *driver;         /* driver.h: the core and its event queue */
    struct agents *agents;         /* agents.h: the agent links */
    struct joins *joins;           /* joins.h: agents with certificates of their own */
    struct lives *lives;           /* lives.h: which life of the cluster this is */
    struct waits *waits;           /* waits.h: long polls of tasks */
    struct gc *gc;                 /* gc.h: checkpoint collection */
    struct logpolicies *policies;  /* logpolicy.h: patterns that logs are held against */
    struct blocks *blocks;         /* blocks.h: sums of trials that have ended */
    struct retention *retention;   /* retention.h: of logs and metrics */
    struct purge *purge;           /* purge.h: of experiments that are being deleted */
    struct hooks *hooks;           /* hooks.h: webhooks */
    struct silence *silence;       /* silence.h: of trials that run elsewhere */
    struct hub *hub;               /* hub.h: "task X has new log lines" */
    struct slow *large;            /* slow.h: what large requests need */
    struct trim *trim;             /* trim.h: memory for the system */
    struct origins *origins;       /* origins.h: where new experiments belong, remembered */
    struct guard *stacks;          /* guard.h: how often people ask where a trial is */
    struct shell_counts counts;
    int downloads;           /* of checkpoints, under way */
    struct logring *logring; /* logring.h: the last lines of the log */
    char cluster_id[37];
    char master_id[37]; /* new at each start */
};

#endif
