/*
 * Who leads: what a standby concludes from what it sees of the leader. Pure: the caller looks every
 * LEAD_POLL_MS and says what it saw. Private to db/.
 *
 * A leader keeps two signs of life in the database: its sessions share an advisory lock (they end
 * with its process), and it raises a counter (which stops when the process is stopped). Its
 * place is taken when
 *  - none of its sessions is left for LEAD_GONE_MS and nobody listens where it served: its process
 *    is dead. That sessions are gone says too little: PostgreSQL restarts, and ends them when it is
 *    told to, and on a busy machine the leader needs a moment to come back. A new process believes
 *    it at its first look;
 *  - its counter stood still for LEAD_SILENT_MS.
 * Time counts only between looks that were answered, and at most twice LEAD_POLL_MS each: a standby
 * that was stopped, or a database that was, tells nothing of the leader. No wall clock is read.
 */
#ifndef DB_LEAD_H
#define DB_LEAD_H

#include <stdbool.h>
#include <stdint.h>

enum { LEAD_POLL_MS = 100, LEAD_BEAT_MS = 500, LEAD_SILENT_MS = 4500, LEAD_GONE_MS = 300 };

struct lead_seen {
    int64_t epoch, beat;
    bool vacant;  /* no session of a leader is left */
    bool refused; /* and its address refuses connections */
};
struct lead_watch { /* cleared: a new process */
    bool is_used, has_last;
    struct lead_seen last;
    int64_t at_ms, silent_ms, gone_ms;
};

/* True: take the leadership. now_ms is monotonic. */
bool lead_watch_look(struct lead_watch *w, int64_t now_ms, const struct lead_seen *seen);
/* Our session is a new one, or taking the place failed: begin anew, with patience. */
void lead_watch_reset(struct lead_watch *w);

#endif
