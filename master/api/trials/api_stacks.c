/* POST /trials/{id}/stacks: where a running trial's ranks are goes into its log. */
#include "agents.h"
#include "api_handlers.h"
#include "api_util.h"
#include "db_trial_read.h"
#include "clk.h"
#include "driver.h"
#include "guard.h"
#include "shell.h"
#include <inttypes.h>
#include <stdio.h>

static void on_ended(void *arg, const struct db_result *r)
{
    struct api_call *c = arg;
    if (!api_missing(c, "trial", r))
        http_fail(c->req, DET_ESTATE, "trial %" PRId64 " has ended: nothing of it runs", c->id);
}

/* Those of its agents that were asked; each says in the log when it has. */
static json_t *ask_agents(struct shell *sh, const char *alloc_id)
{
    json_t *asked = json_array();
    struct core_container_view k;
    for (size_t i = 0; core_alloc_container(api_core(sh), alloc_id, i, &k); i++)
        if (agents_stacks(sh->agents, k.agent_id, k.alloc_id, k.id))
            json_array_append_new(asked, json_string(k.agent_id));
    return asked;
}

/* Each time stops the trial's ranks for a moment and fills its log. */
static void ask_in_measure(struct api_call *c, const char *alloc_id)
{
    char who[24];
    snprintf(who, sizeof who, "%" PRId64, c->req->who.user_id);
    int64_t wait_ms = guard_begin(c->sh->stacks, alloc_id, who, clk_mono_ms());
    if (wait_ms > 0) {
        http_fail_later(c->req, (int)(wait_ms / 1000 + 1), "its stacks were asked for too often");
        return;
    }
    JSON_OWN asked = ask_agents(c->sh, alloc_id);
    if (json_array_size(asked) > 0) {
        api_reply_json(c->req, json_make("{s:O}", "agents", asked));
        return;
    }
    guard_forgive(c->sh->stacks, alloc_id, who);
    http_fail(c->req, DET_EUNAVAIL, "no agent of trial %" PRId64 " can be reached now", c->id);
}

void api_ask_trial_stacks(struct shell *sh, struct http_req *req)
{
    struct api_call *c = api_call(sh, req);
    struct core_trial_view t;
    struct core_alloc_view a;
    if (!api_id(req, "id", &c->id))
        return;
    if (!core_trial_get(api_core(sh), c->id, &t) || trial_state_is_terminal(t.state)) {
        db_trial_read(sh->db, c->id, on_ended, c);
        return;
    }
    if (!t.alloc_id || !core_alloc_get(api_core(sh), t.alloc_id, &a) || a.state != ALLOC_RUNNING) {
        http_fail(req, DET_ESTATE,
                  "trial %" PRId64 " does not run now: det why trial:%" PRId64 " says what it "
                  "waits for",
                  c->id, c->id);
        return;
    }
    ask_in_measure(c, t.alloc_id);
}
