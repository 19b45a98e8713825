/* What a search's log tells people: played on a worker thread, the master goes on meanwhile. */
#include "api_rungs.h"

#include "api_handlers.h"
#include "api_util.h"
#include "db_search_read.h"
#include "search_story.h"
#include "shell.h"
#include "slow.h"
#include <inttypes.h>
#include <string.h>

#define TRIALS_SHOWN 100

struct story {
    struct slow_job job;
    struct shell *sh;
    struct http_req *req;
    int64_t exp_id, trial_id, most; /* trial 0: its rungs */
    json_t *blank;                  /* the answer about a trial, to which the story is added */
    char *config, *events, *trials; /* JSON texts */
    json_t *answer;
    struct det_err err;
};

static void story_free(struct story *p)
{
    json_decref(p->blank);
    json_decref(p->answer);
    free(p->config);
    free(p->events);
    free(p->trials);
    free(p);
}

static void story_work(struct slow_job *j)
{
    struct story *p = container_of(j, struct story, job);
    JSON_OWN config = json_parse(p->config, strlen(p->config), &p->err);
    JSON_OWN events = config ? json_parse(p->events, strlen(p->events), &p->err) : NULL;
    JSON_OWN trials = events ? json_parse(p->trials, strlen(p->trials), &p->err) : NULL;
    struct search_log log = {.config = config, .events = events, .trials = trials};
    if (trials)
        p->answer = p->trial_id ? search_story_trial(&log, p->trial_id, &p->err)
                                : search_story_rungs(&log, (size_t)p->most, &p->err);
}

/* Of a trial that its search did not end the blank answer is all there is to say. */
static void story_done(struct slow_job *j, int status)
{
    struct story *p = container_of(j, struct story, job);
    if (!p->answer && p->err.code < 0) {
        http_fail(p->req, p->err.code, "the log of the search: %s", p->err.text);
    } else if (p->trial_id) {
        if (p->answer) {
            json_object_update(p->blank, p->answer);
            json_set(p->blank, "reason", json_string("SEARCHER"));
        }
        api_reply_json(p->req, json_incref(p->blank));
    } else {
        json_set(p->answer, "experimentId", json_integer(p->exp_id));
        api_reply_json(p->req, json_incref(p->answer));
    }
    story_free(p);
}

static void on_log(void *arg, const struct db_result *r)
{
    struct story *p = arg;
    if (api_failed(p->req, r)) {
        story_free(p);
        return;
    }
    if (db_rows(r) == 0) {
        http_fail(p->req, DET_ENOENT, "experiment %" PRId64 " not found", p->exp_id);
        story_free(p);
        return;
    }
    p->config = det_strdup(db_text(r, 0, SEARCH_CONFIG));
    p->events = det_strdup(db_text(r, 0, SEARCH_EVENTS));
    p->trials = det_strdup(db_text(r, 0, SEARCH_TRIALS));
    p->job = (struct slow_job){.work = story_work, .done = story_done};
    slow_do_now(p->sh->loop, &p->job);
}

void rungs_tell_trial(struct shell *sh, struct http_req *req, int64_t exp_id, int64_t trial_id,
                      json_t *blank)
{
    struct story *p = det_zalloc(sizeof *p);
    *p = (struct story){
        .sh = sh, .req = req, .exp_id = exp_id, .trial_id = trial_id, .blank = blank};
    db_search_log(sh->db, exp_id, on_log, p);
}

void api_get_rungs(struct shell *sh, struct http_req *req)
{
    int64_t id, most;
    if (!api_id(req, "experimentId", &id) || !api_query_i64(req, "limit", TRIALS_SHOWN, &most))
        return;
    if (most < 0) {
        http_fail(req, DET_EINVAL, "limit: %" PRId64 "; expected 0 or more", most);
        return;
    }
    struct story *p = det_zalloc(sizeof *p);
    *p = (struct story){.sh = sh, .req = req, .exp_id = id, .most = most};
    db_search_log(sh->db, id, on_log, p);
}
