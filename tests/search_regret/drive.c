/*
 * A searcher as a shared library that speaks text, for simulations in other languages.
 *   drive_open   config: searcher, hyperparameters, reproducibility as JSON. NULL: standard error
 *                says why
 *   drive_tell   event:  initial | validated ID LENGTH METRIC | closed ID
 *                answer, a line each: create ID | validate ID LENGTH | close ID | shutdown;
 *                borrowed until the next call; NULL: no such event
 */
#include "conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct drive {
    json_t *config;
    struct search *search;
    char *answer;
};
struct drive *drive_open(const char *config);
const char *drive_tell(struct drive *d, const char *event);
void drive_close(struct drive *d);

struct drive *drive_open(const char *config)
{
    struct det_err err = {0};
    struct conf conf;
    struct drive *d = det_zalloc(sizeof *d);
    d->config = json_parse(config, strlen(config), &err);
    if (d->config && conf_read(d->config, &conf, &err) == 0 &&
        search_create(&conf.search, &d->search, &err) == 0)
        return d;
    fprintf(stderr, "search driver: %s\n", err.text);
    drive_close(d);
    return NULL;
}

static void print(FILE *f, const struct search_op *op)
{
    if (op->kind == SEARCH_CREATE)
        fprintf(f, "create %s\n", op->request_id);
    else if (op->kind == SEARCH_VALIDATE_AFTER)
        fprintf(f, "validate %s %lld\n", op->request_id, (long long)op->length);
    else if (op->kind == SEARCH_CLOSE)
        fprintf(f, "close %s\n", op->request_id);
    else
        fprintf(f, "shutdown\n");
}

const char *drive_tell(struct drive *d, const char *event)
{
    char id[64], metric[64];
    long long length = 0;
    struct search_event ev = {.kind = SEARCH_EV_INITIAL, .request_id = id};
    if (sscanf(event, "validated %63s %lld %63s", id, &length, metric) == 3) {
        ev.kind = SEARCH_EV_VALIDATED;
        ev.length = length;
        ev.metric = strtod(metric, NULL);
    } else if (sscanf(event, "closed %63s", id) == 1) {
        ev.kind = SEARCH_EV_CLOSED;
    } else if (strcmp(event, "initial") != 0) {
        return NULL;
    }
    struct search_ops out = {0};
    search_step(d->search, &ev, &out);
    free(d->answer);
    size_t size;
    FILE *f = open_memstream(&d->answer, &size);
    for (size_t i = 0; i < out.ops.n; i++)
        print(f, &out.ops.v[i]);
    fclose(f);
    search_ops_finish(&out);
    return d->answer;
}

void drive_close(struct drive *d)
{
    if (!d)
        return;
    search_destroy(d->search);
    json_decref(d->config);
    free(d->answer);
    free(d);
}
