/* What a configuration would train: POST /searcher/preview and /preview-hp-search. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "expconf.h"
#include "masterconf.h"
#include "search_preview.h"
#include "shell.h"
#include "slow.h"
#include <inttypes.h>
#include <string.h>

/* On a worker thread: a search of 100,000 trials takes its time. */
struct preview {
    struct slow_job job;
    struct shell *sh;
    struct http_req *req;
    json_t *raw;    /* as sent */
    json_t *config; /* whole */
    uint32_t seed;
    bool has_seed, is_plain; /* plain: the answer of /searcher/preview */
    json_t *kinds;
    struct det_err err;
    int rc;
};

static void preview_free(struct preview *p)
{
    json_decref(p->raw);
    json_decref(p->config);
    json_decref(p->kinds);
    free(p);
}

static void preview_work(struct slow_job *j)
{
    struct preview *p = container_of(j, struct preview, job);
    struct expconf_defaults d = {.lower = p->sh->conf->checkpoint_storage,
                                 .wall_s = clk_wall_us() / 1000000,
                                 .unmanaged = true};
    struct mistakes errs = MISTAKES_INIT;
    p->rc = expconf_complete(p->raw, &d, &p->config, &errs, &p->err);
    if (p->rc < 0 && errs.n)
        p->rc = mistakes_report(&errs, "experiment configuration", &p->err);
    mistakes_finish(&errs);
    if (p->rc < 0)
        return;
    if (!p->has_seed)
        p->seed = (uint32_t)json_int(json_obj(p->config, "reproducibility"), "experiment_seed", 0);
    p->rc = search_preview(p->config, p->seed, &p->kinds, &p->err);
}

/* {"100 400": 3, ..}, the longest first. */
static json_t *make_plain(const struct preview *p)
{
    json_t *results = json_object();
    for (size_t i = 0; i < json_array_size(p->kinds); i++) {
        const json_t *kind = json_array_get(p->kinds, i), *lengths = json_arr(kind, "lengths");
        struct buf key = BUF_INIT;
        for (size_t k = 0; k < json_array_size(lengths); k++)
            buf_addf(&key, "%s%" PRId64, k ? " " : "",
                     (int64_t)json_integer_value(json_array_get(lengths, k)));
        json_set(results, buf_str(&key), json_integer(json_int(kind, "trials", 0)));
        buf_finish(&key);
    }
    return json_make("{s:o, s:I}", "results", results, "seed", (json_int_t)p->seed);
}

static json_t *make_simulation(const struct preview *p)
{
    json_t *trials = json_array();
    for (size_t i = 0; i < json_array_size(p->kinds); i++) {
        const json_t *kind = json_array_get(p->kinds, i), *lengths = json_arr(kind, "lengths");
        json_t *ops = json_array();
        for (size_t k = 0; k < json_array_size(lengths); k++) {
            int64_t length = json_integer_value(json_array_get(lengths, k));
            json_array_append_new(ops, json_make("{s:s, s:o}", "type", "RUNNABLE_TYPE_TRAIN",
                                                 "length", json_i64s(length)));
            json_array_append_new(
                ops, json_make("{s:s, s:s}", "type", "RUNNABLE_TYPE_VALIDATE", "length", "0"));
        }
        json_array_append_new(trials, json_make("{s:o, s:I}", "operations", ops, "occurrences",
                                                (json_int_t)json_int(kind, "trials", 0)));
    }
    return json_make("{s:{s:O, s:I, s:o}}", "simulation", "config", p->config, "seed",
                     (json_int_t)p->seed, "trials", trials);
}

static void preview_done(struct slow_job *j, int status)
{
    struct preview *p = container_of(j, struct preview, job);
    if (p->rc < 0)
        http_fail_err(p->req, &p->err);
    else
        api_reply_json(p->req, p->is_plain ? make_plain(p) : make_simulation(p));
    preview_free(p);
}

static void preview_start(struct preview *p)
{
    p->job = (struct slow_job){.work = preview_work, .done = preview_done};
    slow_do_now(p->sh->loop, &p->job);
}

void api_preview_search(struct shell *sh, struct http_req *req)
{
    json_t *raw = api_body(req);
    if (!raw)
        return;
    struct preview *p = det_zalloc(sizeof *p);
    *p = (struct preview){.sh = sh, .req = req, .raw = raw, .is_plain = true};
    preview_start(p);
}

void api_preview_hp_search(struct shell *sh, struct http_req *req)
{
    struct {
        json_t *config;
        int64_t seed;
    } b = {.seed = -1};
    static const struct wire_field fields[] = {{"config", WIRE_OBJECT, 0, WIRE_REQUIRED, NULL},
                                               {"seed", WIRE_I64, sizeof(json_t *), 0, NULL}};
    json_t *body;
    if (!api_decode(req, fields, 2, &b, &body))
        return;
    if (b.seed > UINT32_MAX || b.seed < -1) {
        http_fail(req, DET_EINVAL, "seed: expected 0 to %" PRIu32, UINT32_MAX);
        json_decref(body);
        return;
    }
    struct preview *p = det_zalloc(sizeof *p);
    *p = (struct preview){.sh = sh,
                          .req = req,
                          .raw = json_incref(b.config),
                          .seed = b.seed >= 0 ? (uint32_t)b.seed : 0,
                          .has_seed = b.seed >= 0};
    json_decref(body);
    preview_start(p);
}
