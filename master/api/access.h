/*
 * Whether the caller may do what he asks for: the rule of the route (proto/rules.h), the facts of
 * its subject from the database, and the decision (core's may.h), before the handler sees the
 * request. Private to api/.
 */
#ifndef API_ACCESS_H
#define API_ACCESS_H

#include "http.h"
#include "json.h"
#include "rules.h"

/* Hands the request to its handler if the rule of its route admits the caller. */
void access_enter(struct http_req *req, const struct rule *rule, http_handler *fn);

/* For routes that find out themselves what they are about (SUBJECT_ASKS): asks the rule's right for
 * each of ids (JSON array of strings). cb runs once, now or later; refused is
 * {id: {"code": DET_EPERM or DET_ENOENT, "text": why}}, borrowed, empty when all may be done; NULL:
 * it cannot be found out, and the request is answered. */
typedef void access_cb(void *arg, const json_t *refused);
struct access_ask {
    const struct rule *rule;
    enum subject subject;
    access_cb *cb;
    void *arg;
};
void access_ask(struct http_req *req, const struct access_ask *a, const json_t *ids);
/* Answers with the first refusal; false: there is none. */
bool access_refused(struct http_req *req, const json_t *refused);
/* The same for what a part of the body asks for beyond the route's rule; because: which part. */
bool access_refused_because(struct http_req *req, const json_t *refused, const char *because);
/* The same for one, or for everything at once (id 0: administrators only): refused, the request is
 * answered; else go_on. */
struct access_one {
    const struct rule *rule;
    enum subject subject;
    void (*go_on)(void *arg);
    void *arg;
};
void access_ask_one(struct http_req *req, const struct access_one *o, int64_t id);

#endif
