/*
 * Each kind of row as one table: a column, the member it is, how it is told in text, and when it is
 * written. Statements that write rows, those that read them back and whoever keeps rows elsewhere
 * go by it.
 */
#ifndef PROTO_ROWTABLE_H
#define PROTO_ROWTABLE_H

#include "rows.h"
#include <stddef.h>

/* In the order in which a core is rebuilt from them. */
enum row_kind {
    ROW_AGENT,
    ROW_STORE,
    ROW_EXPERIMENT,
    ROW_SEARCH_SNAPSHOT,
    ROW_SEARCH_EVENT,
    ROW_TRIAL,
    ROW_ALLOCATION,
    ROW_KIND_COUNT
};
union row_any {
    struct row_agent agent;
    struct row_store store;
    struct row_experiment experiment;
    struct row_search_snapshot search_snapshot;
    struct row_search_event search_event;
    struct row_trial trial;
    struct row_allocation allocation;
};

enum row_type {
    COL_TEXT,       /* NULL: null */
    COL_I64,        /* the member may be an int */
    COL_I64_OR_0,   /* 0: null */
    COL_I64_OR_NEG, /* negative: null */
    COL_F64,
    COL_F64_OR_NEG,
    COL_BOOL,
    COL_TIME, /* microseconds, 0: null */
    COL_EXP_STATE,
    COL_TRIAL_STATE,
    COL_ALLOC_STATE
};
enum row_when {
    COL_KEY,     /* names the row; written always */
    COL_CHANGES, /* written always */
    COL_ONCE,    /* written when the row is new */
    COL_GIVEN,   /* and later where it is not NULL, in a statement of its own */
    COL_READ     /* not written: who reads gives it this name */
};
struct row_column {
    const char *name, *sql_type;
    enum row_type type;
    enum row_when when;
    size_t at, size; /* of the member */
};
enum { ROW_COLUMNS_MAX = 16, ROW_TEXT_MAX = 40 };
struct row_table {
    const char *what; /* "trial" */
    const struct row_column *v;
    size_t n;
};
extern const struct row_table row_tables[ROW_KIND_COUNT];

/* What is written of a row, as statements have it: the key, what changes, of a new row also what is
 * written once. How many they are. */
size_t rowtable_written(enum row_kind kind, bool is_new,
                        const struct row_column *ret[ROW_COLUMNS_MAX]);
/* The value as PostgreSQL reads it, in num or borrowed of the row; NULL: null. */
const char *rowtable_text(const struct row_column *c, const void *row, char num[ROW_TEXT_MAX]);
/* Its texts stand in an array without quotes. */
bool rowtable_is_number(const struct row_column *c);
/* The member from such a text, of times the microseconds, which is borrowed; NULL: null. False: no
 * state of that name. */
bool rowtable_put(const struct row_column *c, void *row, const char *text);
/* What is written of `by`, a later state of the same row, is put into row; texts are borrowed. */
void rowtable_update(enum row_kind kind, void *row, const void *by);
/* Whose row it is; 0: of no experiment. */
int64_t rowtable_exp_id(enum row_kind kind, const void *row);

#endif
