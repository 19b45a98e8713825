#include "strays.h"

#include "db_lives.h"
#include "driver.h"
#include "log.h"

#include <string.h>

enum { BODY_MAX = 65536 };

/* PostgreSQL's text holds no NUL. */
static json_t *make_text(const char *p, size_t n)
{
    n = n < BODY_MAX ? n : BODY_MAX;
    return json_lossy(p, strnlen(p, n));
}

void strays_keep_request(struct shell *sh, const struct http_req *req, db_cb *cb, void *arg)
{
    const char *p = buf_str((struct buf *)&req->body);
    JSON_OWN body = make_text(p, req->body.len);
    det_cleanup(freep) char *what = det_asprintf("request %s", req->route->pattern);
    struct db_stray s = {.agent_id = "",
                         .alloc_id = req->who.alloc_id,
                         .what = what,
                         .body = json_string_value(body)};
    db_stray_keep(sh->db, &s, cb, arg);
}

static void on_kept(void *arg, const struct db_result *r)
{
    if (db_rc(r) < 0)
        log_warning("the end of a task of another life is not kept: %s", db_error(r)->text);
}

void strays_on_exit(struct shell *sh, const char *agent_id, const struct link_task *t)
{
    struct core_alloc_view v;
    if (core_alloc_get(driver_core(sh->driver), t->alloc, &v))
        return;
    JSON_OWN exit = link_exit_json(&t->exit);
    det_cleanup(freep) char *text = json_text(exit);
    JSON_OWN body = make_text(text, strlen(text));
    struct db_stray s = {.agent_id = agent_id,
                         .alloc_id = t->alloc,
                         .what = "exit",
                         .body = json_string_value(body),
                         .unless_known = true};
    db_stray_keep(sh->db, &s, on_kept, NULL);
}
