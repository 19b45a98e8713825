/* Checkpoint stores: what is where, and an administrator's word that one was moved. */
#include "api_handlers.h"
#include "api_util.h"
#include "clk.h"
#include "db_gc.h"
#include "driver.h"
#include "shell.h"
#include <string.h>

static json_t *sights_json(const struct core *core, const char *place)
{
    json_t *list = json_array();
    struct core_agent_view a;
    struct core_sight_view v;
    for (size_t i = 0; core_agent_at(core, i, &a); i++)
        for (size_t k = 0; core_agent_sight(core, a.id, k, &v); k++)
            if (strcmp(v.place, place) == 0)
                json_array_append_new(list,
                                      json_make("{s:s,s:s,s:s}", "agentId", a.id, "state",
                                                core_store_kind_text(v.kind), "text", v.text));
    return list;
}

void api_get_stores(struct shell *sh, struct http_req *req)
{
    json_t *list = json_array();
    struct core_store_view v;
    for (size_t i = 0; core_store_at(api_core(sh), i, &v); i++) {
        char time[CLK_RFC3339_MAX];
        clk_format(v.used_us, time);
        json_t *j =
            json_make("{s:s,s:s?,s:s?,s:s,s:o}", "place", v.place, "id", v.id, "madeOn", v.made_on,
                      "firstUsed", time, "agents", sights_json(api_core(sh), v.place));
        json_set(j, "userId", v.owner_id ? json_integer(v.owner_id) : json_null());
        json_array_append_new(list, j);
    }
    api_reply_json(req, json_make("{s:o}", "stores", list));
}

struct adopting {
    struct shell *sh;
    struct http_req *req;
    char *place;
};

static void on_adopted(void *arg, const struct core_reply *r)
{
    struct http_req *req = arg;
    if (r->code)
        http_fail(req, r->code, "%s", r->text);
    else
        http_reply(req, 200, "{}");
}

static void adopt_place(struct adopting *a, json_t *known)
{
    struct core_event ev = {.kind = CORE_EV_STORE_ADOPT,
                            .adopt = {.place = a->place, .known = known}};
    driver_post(a->sh->driver, &ev, on_adopted, a->req);
}

static void on_known(void *arg, const struct db_result *r)
{
    struct adopting *a = arg;
    if (db_rc(r) < 0) {
        http_fail_err(a->req, db_error(r));
        return;
    }
    const char *text = db_rows(r) == 1 && !db_is_null(r, 0, 0) ? db_text(r, 0, 0) : "[]";
    JSON_OWN known = json_parse(text, strlen(text), NULL);
    adopt_place(a, known);
}

void api_adopt_store(struct shell *sh, struct http_req *req)
{
    struct {
        const char *place;
        int empty;
    } b = {0};
    static const struct wire_field fields[] = {
        {"place", WIRE_STR, 0, WIRE_REQUIRED, NULL},
        {"empty", WIRE_BOOL, offsetof(__typeof__(b), empty), 0, NULL},
    };
    json_t *body;
    if (!api_decode(req, fields, DET_ARRAY_LEN(fields), &b, &body))
        return;
    struct adopting *a = http_mem(req, sizeof *a);
    *a = (struct adopting){.sh = sh, .req = req, .place = http_mem(req, strlen(b.place) + 1)};
    memcpy(a->place, b.place, strlen(b.place) + 1);
    json_decref(body);
    if (b.empty == 1)
        adopt_place(a, NULL);
    else
        db_store_known(sh->db, a->place, on_known, a);
}
