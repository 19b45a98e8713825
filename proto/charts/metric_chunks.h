/*
 * Chunks of reports, as the database keeps them for charts (db/functions/chunks.sql), made of the
 * reports on their way there: PostgreSQL takes longer to look into their documents than to write
 * them. What is made here is what chunk_of_numbers() and chunk_of_chunks() make of the same
 * reports, as json_write() writes them. Thread: any.
 */
#ifndef PROTO_METRIC_CHUNKS_H
#define PROTO_METRIC_CHUNKS_H

#include "metric_values.h"

#define METRIC_CHUNK_REPORTS 16  /* the fewest in a chunk */
#define METRIC_CHUNKS_MAX    4   /* of a batch: four are one of the level above, as a rule */
#define METRIC_BATCH_MAX     128 /* reports */

struct metric_point_set { /* of one report */
    int64_t steps;
    int64_t time_us; /* wall */
    const char *doc; /* the object that values are found in; borrowed, like them */
    const struct metric_value *values;
    size_t n;
};

struct metric_name {
    const char *p;
    size_t len;
};

struct metric_chunk {
    size_t end;        /* its last report is the one before this */
    struct buf doc;    /* JSON: name -> [count, sum, [min, steps, at], [max, steps, at], last] */
    struct buf line;   /* "steps,steps,..;at,at,.." */
    struct buf values; /* JSON: name -> "value,value,.." */
};

struct metric_chunks {
    struct metric_chunk v[METRIC_CHUNKS_MAX];
    size_t n;
    struct buf whole;                             /* a doc of all the reports */
    struct metric_name names[METRIC_CHUNK_NAMES]; /* borrowed of the first report's doc */
    size_t names_n;
};

/* False where the reports (at most METRIC_BATCH_MAX) are too few for a chunk, or the database has
 * to look itself: their steps do not rise, they have no values or not all the same names, or a
 * number is written with very many digits. Then *ret is empty. */
bool metric_chunks_make(struct metric_chunks *ret, const struct metric_point_set *v, size_t n);
void metric_chunks_finish(struct metric_chunks *c);

#endif
