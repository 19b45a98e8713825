/* GET /trials/{id}/why, /experiments/{id}/why, /jobs/{jobId}/why */
#include "api_gpus.h"
#include "api_handlers.h"
#include "api_rungs.h"
#include "api_util.h"
#include "clk.h"
#include "db_exp_read.h"
#include "db_trial_read.h"
#include "driver.h"
#include "shell.h"
#include "why.h"
#include <inttypes.h>
#include <string.h>

static struct core_now read_clocks(void)
{
    return (struct core_now){clk_mono_ms(), clk_wall_us()};
}

/* where: "": nobody knows any more. */
static void add_last_run(json_t *j, const char *how, const char *where)
{
    det_cleanup(freep) char *text = det_asprintf(
        "%s; its last run%s%s: %s", json_str(j, "text", ""), *where ? ", on " : "", where, how);
    json_set(j, "text", json_string(text));
}

/* why "": it gave no reason. */
static void say_invalid(json_t *j, const char *why)
{
    det_cleanup(freep) char *text =
        det_asprintf("it ended itself: it said that its hyperparameters are invalid%s%s",
                     *why ? ": " : "; its log says why", why);
    json_set(j, "text", json_string(text));
}

/* A trial that failed did so in its last run; one that completed was ended by its search, which may
 * have had a reason. */
static void reply_trial(const struct api_call *c, const struct db_result *r)
{
    const char *state = db_text(r, 0, TRIAL_END_STATE);
    int64_t exp_id = db_i64(r, 0, TRIAL_END_EXP);
    json_t *j = core_why_ended(state);
    if (trial_state_is(state, TRIAL_ERROR) && !db_is_null(r, 0, TRIAL_END_TEXT))
        add_last_run(j, db_text(r, 0, TRIAL_END_TEXT), db_text(r, 0, TRIAL_END_PLACE));
    json_set(j, "trialId", json_integer(c->id));
    json_set(j, "experimentId", json_integer(exp_id));
    bool invalid = trial_state_is(state, TRIAL_COMPLETED) && db_bool(r, 0, TRIAL_END_INVALID);
    if (invalid)
        say_invalid(j, db_text(r, 0, TRIAL_END_INVALID_FOR));
    if (trial_state_is(state, TRIAL_COMPLETED) && !invalid)
        rungs_tell_trial(c->sh, c->req, exp_id, c->id, j);
    else
        api_reply_json(c->req, j);
}

static void on_trial(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (!api_missing(c, "trial", r))
        reply_trial(c, r);
}

void api_get_trial_why(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    if (!api_id(req, "id", &c->id))
        return;
    json_t *j = core_why_trial(driver_core_to_try(sh->driver), c->id, read_clocks());
    if (j)
        gpus_tell_idle(sh, c->id, j);
    if (j)
        api_reply_json(req, j);
    else
        db_trial_end(sh->db, c->id, on_trial, c);
}

/* What the core does not know any more. */
static void on_exp(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (api_missing(c, "experiment", r))
        return;
    const char *state = db_text(r, 0, EXP_END_STATE);
    json_t *j = core_why_ended(state);
    if (exp_state_is(state, EXP_DELETE_FAILED) && !db_is_null(r, 0, EXP_END_UNDELETED))
        core_why_undeleted(j, c->id, db_text(r, 0, EXP_END_UNDELETED));
    json_set(j, "experimentId", json_integer(c->id));
    api_reply_json(c->req, j);
}

void api_get_experiment_why(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    if (!api_id(req, "id", &c->id))
        return;
    json_t *j = core_why_exp(driver_core_to_try(sh->driver), c->id, read_clocks());
    if (j)
        api_reply_json(req, j);
    else
        db_exp_end(sh->db, c->id, on_exp, c);
}

void api_get_job_why(struct shell *sh, struct http_req *req)
{
    const char *job = http_param(req, "jobId");
    det_cleanup(freep) int64_t *ids = NULL;
    size_t n = core_jobs(api_core(sh), NULL, &ids);
    json_t *j = NULL;
    for (size_t i = 0; i < n && !j; i++) {
        struct core_exp_view v;
        if (core_exp_get(api_core(sh), ids[i], &v) && strcmp(v.job_id, job) == 0)
            j = core_why_exp(driver_core_to_try(sh->driver), ids[i], read_clocks());
    }
    if (j)
        api_reply_json(req, j);
    else
        http_fail(req, DET_ENOENT, "job %.60s not found among those that are live", job);
}
