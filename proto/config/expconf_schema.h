/* The experiment configuration as one const table, and the walk over a document that every stage
 * uses. Private to expconf_*.c and its tests. */
#ifndef PROTO_EXPCONF_SCHEMA_H
#define PROTO_EXPCONF_SCHEMA_H

#include "expconf.h"

enum expconf_type {
    EXPCONF_STR,
    EXPCONF_INT,
    EXPCONF_NUM,
    EXPCONF_BOOL,
    EXPCONF_ENUM,       /* one of `choices` */
    EXPCONF_OBJECT,     /* closed: its keys are table entries */
    EXPCONF_FREE,       /* a map of anything */
    EXPCONF_ANY,        /* accepted and dropped */
    EXPCONF_NULL,       /* must be null */
    EXPCONF_STRS,       /* list of text */
    EXPCONF_INTS,       /* list of whole numbers */
    EXPCONF_OBJECTS,    /* list of closed objects: entries "path[].key" */
    EXPCONF_DEVICES,    /* the same, or "/host:/container[:mode]" */
    EXPCONF_LENGTH,     /* a length with a unit */
    EXPCONF_MAX_LENGTH, /* a length of at least 1 with a unit, or a plain number */
    EXPCONF_ENTRYPOINT, /* text, or list of text */
    EXPCONF_IMAGE,      /* text, or a map by kind of device */
    EXPCONF_ENV_VARS,   /* list of K=V, or a map of such lists by kind of device */
    EXPCONF_SIZE,       /* bytes, or text such as 4g */
    EXPCONF_PORTS,      /* map of whole numbers */
    EXPCONF_PYTHON,     /* closed as EXPCONF_OBJECT is; or its `interpreter`, `requirements` */
    EXPCONF_HPARAMS,
    EXPCONF_PATTERN, /* text: a regular expression (pattern.h) */
    EXPCONF_TYPE_COUNT
};

struct expconf_key {
    const char *path; /* "searcher.max_length", "bind_mounts[].host_path" */
    enum expconf_type type;
    int64_t min, max;            /* of a whole number; both 0: 0..INT32_MAX */
    const char *fallback;        /* the default as JSON; NULL: absent stays absent */
    const char *choices;         /* EXPCONF_ENUM: "best all none" */
    const char *kinds;           /* of a one-of object: the kinds that take this key; NULL: all */
    const char *example;         /* a value to write */
    bool (*ok)(const json_t *v); /* a further condition on a value of the right type */
    const char *rule;            /* what ok demands, after "expected" */
    const char *idle;            /* why nothing acts on it, and what to do instead; NULL: it acts */
    bool required;               /* once its parent is there, and of one of the kinds */
};

extern const struct expconf_key expconf_keys[];
extern const size_t expconf_keys_n;

/* The entry of one key of the object at path `prefix` ("" is the top); NULL if unknown. */
const struct expconf_key *expconf_key_find(const char *prefix, const char *name);
/* The last part of key's path if prefix is its parent, else NULL. */
const char *expconf_key_child(const struct expconf_key *key, const char *prefix);
/* For a one-of object (searcher, checkpoint_storage) the key that holds the kind; else NULL. */
const char *expconf_kind_key(const char *prefix);
/* Whether the key belongs to objects of the kind; a NULL kind (not given) takes every key. */
bool expconf_key_takes(const struct expconf_key *key, const char *kind);
/* Whether `word` is one of the words of a list separated by blanks. */
bool expconf_word_in(const char *list, const char *word);

/* One pass: on_object for each closed object, then on_key for each of the table's keys under it
 * (v NULL if absent), then down into the value that is there afterwards. */
struct expconf_walk {
    void (*on_object)(struct expconf_walk *w, const char *prefix, json_t *obj);
    void (*on_key)(struct expconf_walk *w, const struct expconf_key *key, json_t *obj,
                   const char *name, json_t *v);
    struct mistakes *errs;
    struct buf where; /* the real path at hand, with indices: "bind_mounts[1].host_path" */
};
void expconf_walk(struct expconf_walk *w, json_t *config);

/* The stages, in order; see expconf.h. */
void expconf_check(const json_t *raw, struct mistakes *errs);
void expconf_normalise(json_t *config);
void expconf_check_whole(const json_t *config, bool unmanaged, struct mistakes *errs);
void expconf_fill(json_t *config, const struct expconf_defaults *d);

/* A whole number, also one written as 1e3. */
bool expconf_whole(const json_t *v, int64_t *ret);
/* Bytes of 5, "4g", "1.5 GiB"; units are powers of 1024. False if it is none. */
bool expconf_size(const json_t *v, int64_t *ret);
/* Splits "/host:/container[:mode]"; new reference, NULL if it is none. */
json_t *expconf_device(const char *text);
/* "quietly-brave-otter"; the caller frees. */
char *expconf_three_words(uint64_t seed);

#endif
