/*
 * det, the command line. A command is `det NOUN VERB [options] [arguments]`; each noun is one file
 * with one const table of verbs. Results go to standard output (tables for people, --json for
 * programs); messages, progress and errors go to standard error. Exit codes: 0 done, 1 it failed
 * (the message says why), 2 the command line was wrong.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "det/err.h"
#include "json.h"
#include "opt.h"
#include <stdbool.h>

#define CLI_FAILED 1
#define CLI_USAGE  2

struct session;

struct cli {
    const char *master;      /* URL as given or found; borrowed */
    const char *user;        /* -u or DET_USER; NULL: not said */
    const char *fingerprint; /* of the master's authority, to be trusted; NULL: not said */
    bool json;               /* --json: print the answer itself */
    struct session *s;       /* created on first use */
    struct opt_list args;    /* positional arguments after the verb */
};

struct verb {
    const char *name, *alias;
    const char *args; /* "ID [NAME]": '[' begins the optional ones, "..." ends a list */
    const char *help;
    const struct opt *opts; /* its own options; NULL: none */
    /* Returns an exit code; on failure the message is in *err. */
    int (*run)(struct cli *c, struct det_err *err);
};

struct noun {
    const char *name, *alias, *alias2;
    const char *help;
    const struct verb *verbs; /* ends with a NULL name; one without a name: the noun is the
                               * command */
};

extern const struct noun noun_experiment, noun_trial, noun_checkpoint, noun_store, noun_agent,
    noun_slot, noun_user, noun_master, noun_job, noun_task, noun_pool, noun_preview_search,
    noun_why, noun_template, noun_workspace, noun_project, noun_token, noun_group, noun_rbac,
    noun_tensorboard, noun_auth, noun_model, noun_python, noun_resources, noun_version;

/* Argument i, or NULL. */
const char *cli_arg(const struct cli *c, size_t i);
/* Argument i as a positive id; DET_EINVAL names it. */
DET_MUST int cli_arg_id(const struct cli *c, size_t i, const char *what, int64_t *ret,
                        struct det_err *err);
/* Argument i as ids with commas between. The caller frees *ret, also on failure. */
DET_MUST int cli_arg_ids(const struct cli *c, size_t i, const char *what, int64_t **ret,
                         size_t *ret_n, struct det_err *err);
/* The whole text as a number, whole or any finite one; NULL: it is none. The caller owns it. */
json_t *cli_whole(const char *text);
json_t *cli_number(const char *text);

/* text as one segment of a path or one value of a query: percent-encoded. Caller frees. */
char *cli_escaped(const char *text);

/* One API call. path begins below /api/v1 ("/experiments/1"); body is borrowed, NULL for none;
 * *ret_answer (may be NULL) is a new reference. Logs in first when needed. */
DET_MUST int cli_call(struct cli *c, const char *method, const char *path, const json_t *body,
                      json_t **ret_answer, struct det_err *err);
int cli_get(struct cli *c, json_t **ret_answer, struct det_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Streams NDJSON answers: fn gets each "result". fn's non-zero result ends the stream. */
DET_MUST int cli_stream(struct cli *c, const char *path, int (*fn)(void *arg, json_t *result),
                        void *arg, struct det_err *err);
/* The same, and opened() gets arg at the head of a good answer, before there is a line to send. */
DET_MUST int cli_follow(struct cli *c, const char *path, void (*opened)(void *arg),
                        int (*fn)(void *arg, json_t *result), void *arg, struct det_err *err);
/* GET of a path below the master's root: an answer of the type `accept` and max bytes at most; what
 * out holds is freed. */
DET_MUST int cli_download(struct cli *c, const char *path, const char *accept, size_t max,
                          struct buf *out, struct det_err *err);
/* GET of a path below the master's root, without a token: /info. */
DET_MUST int cli_get_open(struct cli *c, const char *path, json_t **ret_answer,
                          struct det_err *err);

/* Finds the master and makes sure of it (people/trust.h). Every call does so first. */
DET_MUST int session_open(struct cli *c, struct det_err *err);
DET_MUST int session_login(struct cli *c, const char *user, const char *password,
                           struct det_err *err);
DET_MUST int session_logout(struct cli *c, struct det_err *err);
void session_destroy(struct session *s);
/* "sha512(salt + password)" in hex as clients send it; "" stays "". out holds HASH_HEX_MAX. */
void session_hash_password(const char *password, char *out);
/* Asks on the terminal without echo; reads a line of standard input when that is no terminal. */
char *session_ask_password(const char *prompt);

/* Asks on the terminal; true for yes. Else *err says that nothing was `done` ("deleted"), and that
 * --yes does it without asking. */
bool cli_confirmed(const char *question, const char *done, struct det_err *err);

/* Prints an answer as JSON when --json was given; true if it did. */
bool cli_print_json(const struct cli *c, const json_t *answer);

#endif
