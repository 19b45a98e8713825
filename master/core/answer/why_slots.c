#include "why_slots.h"

#include "slots.h"

enum { LISTED_MAX = 20, NAMED_MAX = 3 };

struct told {
    json_t *list;
    struct buf text;
    size_t total;
};

static void add_slot(struct told *t, const struct agent *a, const struct slot *s)
{
    if (t->total++ < LISTED_MAX)
        json_array_append_new(t->list, json_make("{s:s,s:i,s:s,s:s,s:b}", "agentId", a->id, "slot",
                                                 s->id, "state", core_slot_state_text(s->state),
                                                 "text", s->why, "forced", s->forced));
    if (t->total <= NAMED_MAX)
        buf_addf(&t->text, "; slot %d of agent %s is not usable: %s", s->id, a->id, s->why);
}

static void answer_with(struct told *t, json_t *answer)
{
    if (t->total > NAMED_MAX)
        buf_addf(&t->text, "; and %zu more slots are not usable", t->total - NAMED_MAX);
    det_cleanup(freep) char *text =
        det_asprintf("%s%s", json_str(answer, "text", ""), buf_str(&t->text));
    if (t->total > 0) {
        json_set(answer, "text", json_string(text));
        json_set(answer, "slotsOut", json_incref(t->list));
    }
    json_decref(t->list);
    buf_finish(&t->text);
}

void why_slots_of_pool(const struct pool *p, json_t *answer)
{
    struct told t = {.list = json_array(), .text = BUF_INIT};
    for (size_t i = 0; i < p->agents.n; i++) {
        const struct agent *a = p->agents.v[i];
        for (size_t k = 0; a->state == AGENT_UP && k < a->slots.n; k++)
            if (a->slots.v[k].state != CORE_SLOT_USABLE && slot_is_out(&a->slots.v[k]))
                add_slot(&t, a, &a->slots.v[k]);
    }
    answer_with(&t, answer);
}

void why_slots_of_alloc(const struct alloc *al, json_t *answer)
{
    struct told t = {.list = json_array(), .text = BUF_INIT};
    for (size_t i = 0; i < al->containers.n; i++) {
        const struct agent *a = al->containers.v[i]->agent;
        for (size_t k = 0; a && k < a->slots.n; k++)
            if (a->slots.v[k].holder == al->containers.v[i] &&
                a->slots.v[k].state > CORE_SLOT_UNSEEN)
                add_slot(&t, a, &a->slots.v[k]);
    }
    answer_with(&t, answer);
}
